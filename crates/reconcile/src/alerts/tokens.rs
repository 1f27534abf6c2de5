//! Tokens that expire soon: compared with what their alert has found whenever a token changes or the time of one comes.

use podium_api::{Timestamp, TokenId};
use podium_app::world::World;
use podium_db::{Conn, Result, Tx};
use podium_store::Steward;
use podium_store::alert_firings::{self as firings, ExpiringToken};
use podium_store::alert_watches::Found;
use podium_store::alerts::AlertRow;

/// How many tokens an alert is about at most; others follow when some of them are not any more.
const MOST_TOKENS: u32 = 1000;

/// What has changed about tokens that expire soon.
pub(super) struct Look {
    begun: Vec<ExpiringToken>,
    ended: Vec<TokenId>,
    /// When to look again.
    pub(super) next: Option<Timestamp>,
}

pub(super) fn look(conn: &Conn, system: &Steward, alert: &AlertRow, now: Timestamp) -> Result<Look> {
    let before = alert.rule.threshold().notice_of_expiry();
    let until = now + before;
    let known = firings::open_tokens(conn, system, alert.id, MOST_TOKENS)?;
    let ends = firings::ends_of(conn, system, alert, &known)?;
    let expires = |id: &TokenId| ends.iter().find(|(other, _)| other == id).and_then(|(_, end_at)| *end_at);
    let is_soon = |end_at: Timestamp| end_at > now && end_at <= until;
    let (lasting, ended): (Vec<TokenId>, Vec<TokenId>) =
        known.into_iter().partition(|id| expires(id).is_some_and(is_soon));
    let room = MOST_TOKENS.saturating_sub(u32::try_from(lasting.len()).unwrap_or(u32::MAX));
    let begun = firings::expiring(conn, system, alert, (now, until), room)?;
    let later = firings::next_end(conn, system, alert, until)?.map(|end_at| end_at - before);
    let next = lasting.iter().filter_map(expires).chain(later).min();
    Ok(Look { begun, ended, next })
}

impl Look {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.ended.is_empty()
    }

    /// Writes down what has changed.
    pub(super) fn note(
        self,
        tx: &Tx,
        system: &Steward,
        world: &World,
        alert: &AlertRow,
        now: Timestamp,
    ) -> Result<()> {
        for id in &self.ended {
            firings::resolve(tx, system, alert.id, id.as_str(), now, now)?;
        }
        for ExpiringToken { subject, end_at } in self.begun {
            let reason = format!("It expires at {end_at}.");
            let found = Found { subject, run_id: String::new(), reason, since: now };
            firings::fire(tx, system, alert, world.id(), &found, now)?;
        }
        Ok(())
    }
}

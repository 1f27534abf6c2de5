//! Sends the mails of alerts, apart from the loop of alerts: a mail server that hangs holds up mails and nothing else.

use std::time::Duration;

use futures_util::future::join_all;
use podium_api::AlertId;
use podium_app::App;
use podium_app::mail::Undelivered;
use podium_db::Tx;
use podium_domain::webhooks::retry_at;
use podium_store::alert_mails::{self as mails, MailRow};
use podium_store::{Steward, alerts};
use tokio::time::Instant;

use crate::reconciler::{Attempts, Failure, StepResult, random, reconciles};

const AT_ONCE: u32 = 4;

pub(crate) struct AlertMails {
    app: App,
    system: Steward,
    attempts: Attempts,
}

impl AlertMails {
    pub(crate) fn new(app: &App, system: Steward, step_time: Duration) -> Self {
        Self { app: app.clone(), system, attempts: Attempts::within(step_time) }
    }

    async fn reconcile(&self, id: AlertId) -> Result<StepResult, Failure> {
        let (system, started) = (self.system, Instant::now());
        loop {
            let (now, claim) = (self.app.world.now(), self.attempts.claim);
            let claim = move |tx: &Tx| match alerts::state(tx, &system, id)? {
                Some(_) => mails::claim(tx, &system, id, now, now + claim, AT_ONCE),
                // Its own loop removes what it has left.
                None => Ok::<_, podium_db::Error>(Vec::new()),
            };
            let claimed = self.app.db(&self.system).write(None, claim).await?;
            if claimed.is_empty() {
                break;
            }
            let sent = claimed.into_iter().map(|mail| self.send(id, mail));
            join_all(sent).await.into_iter().collect::<Result<Vec<()>, Failure>>()?;
            if started.elapsed() > self.attempts.begins {
                return Ok(StepResult::at(self.app.world.now(), "More mails are due."));
            }
        }
        let next =
            self.app.db(&self.system).read(None, move |conn| match alerts::state(conn, &system, id)? {
                Some(_) => mails::next_due(conn, &system, id),
                None => Ok::<_, podium_db::Error>(None),
            });
        Ok(match next.await? {
            Some(then) => StepResult::at(then, "A mail is sent again after a failed attempt."),
            None => StepResult::settled(),
        })
    }

    /// Makes an attempt, and writes down its result.
    async fn send(&self, alert_id: AlertId, mail: MailRow) -> Result<(), Failure> {
        let later = |detail: &str| Undelivered { is_final: false, detail: detail.to_owned() };
        let sent = match &self.app.config.mailer {
            Some(mailer) => {
                let sending =
                    mailer.send(Some(mail.id.as_str()), &mail.recipient, &mail.subject, mail.body.clone());
                tokio::time::timeout(self.attempts.attempt, sending)
                    .await
                    .unwrap_or_else(|_| Err(later("it takes too long")))
            }
            None => Err(later("no mail server is configured")),
        };
        let now = self.app.world.now();
        let (again_at, failed_at) = match &sent {
            Ok(()) => (None, None),
            Err(error) => {
                let again_at = retry_at(now, mail.attempts, None, random(&self.app));
                (again_at.filter(|_| !error.is_final), Some(now))
            }
        };
        if let Err(error) = sent {
            let is_given_up = again_at.is_none();
            tracing::warn!(%alert_id, error = error.detail, is_given_up, "a mail of an alert could not be sent");
        }
        let system = self.system;
        let finish = move |tx: &Tx| {
            if mails::finish(tx, &system, &mail, again_at)? {
                alerts::mail_ended(tx, &system, alert_id, failed_at)?;
            }
            Ok::<_, podium_db::Error>(())
        };
        Ok(self.app.db(&self.system).write(None, finish).await?)
    }
}

reconciles!(mails::KIND, AlertId => AlertMails);

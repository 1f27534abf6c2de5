//! Sends the mails of alerts, apart from the loop of alerts: a mail server that hangs holds up mails and nothing else.

use std::time::Duration;

use futures_util::future::join_all;
use podium_api::{AlertId, Id};
use podium_app::App;
use podium_app::mail::Undelivered;
use podium_db::Tx;
use podium_domain::webhooks::retry_at;
use podium_store::alert_mails::{self as mails, MailRow};
use podium_store::{Steward, alerts};
use tokio::time::Instant;

use crate::reconciler::{Failure, Reconciler, StepFuture, StepResult};

/// How many mails of one alert are sent at once.
const AT_ONCE: u32 = 4;
/// The longest attempt.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(15);

/// The reconciler of the mails of alerts.
pub(crate) struct AlertMails {
    app: App,
    system: Steward,
    /// The longest attempt, and for how long further ones are begun; together less than a step may take.
    attempt: Duration,
    begins: Duration,
    /// How long a claim lasts: longer than a step.
    claim: Duration,
}

impl AlertMails {
    pub(crate) fn new(app: &App, system: Steward, step_time: Duration) -> Self {
        let attempt = (step_time * 3 / 4).min(LONGEST_ATTEMPT);
        Self { app: app.clone(), system, attempt, begins: step_time / 8, claim: step_time * 3 / 2 }
    }

    async fn reconcile(&self, id: AlertId) -> Result<StepResult, Failure> {
        let (system, started) = (self.system, Instant::now());
        loop {
            let (now, claim) = (self.app.world.now(), self.claim);
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
            if started.elapsed() > self.begins {
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
                tokio::time::timeout(self.attempt, sending)
                    .await
                    .unwrap_or_else(|_| Err(later("it takes too long")))
            }
            None => Err(later("no mail server is configured")),
        };
        let now = self.app.world.now();
        let mut random = [0; 8];
        self.app.world.fill(&mut random);
        let (again_at, failed_at) = match &sent {
            Ok(()) => (None, None),
            Err(error) => {
                let again_at = retry_at(now, mail.attempts, None, u64::from_le_bytes(random));
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

impl Reconciler for AlertMails {
    fn kind(&self) -> &'static str {
        mails::KIND
    }

    fn step(&self, id: Id) -> StepFuture<'_> {
        Box::pin(self.reconcile(AlertId::from_raw(id)))
    }
}

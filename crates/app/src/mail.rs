//! E-mail, if a mail server is configured.

use lettre::message::{Mailbox, header::ContentType};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

/// Why mail cannot be sent with these settings.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("the mail server's URL cannot be used: {0}")]
    Server(#[from] lettre::transport::smtp::Error),
    #[error("the sender's address cannot be used: {0}")]
    Sender(#[from] lettre::address::AddressError),
}

/// Why the mail server did not take a mail, for the operator.
#[derive(Debug)]
pub struct Undelivered {
    /// Whether it never will, for example because there is no such mailbox.
    pub is_final: bool,
    pub detail: String,
}

#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// From a URL such as `smtps://user:password@mail.example.com` and the sender's address.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)?.build();
        Ok(Self { transport, from: from.parse()? })
    }

    /// Sends the link of an invite. A failure is logged: the link can always be made again.
    pub(crate) fn send_invite(&self, to: &str, organization: &str, url: &str) {
        let text = format!(
            "You are invited to {organization}.\n\nOpen this link to accept, within seven days:\n{url}\n\n\
             If you did not expect this, you need not do anything.\n"
        );
        let (mailer, to) = (self.clone(), to.to_owned());
        let subject = format!("Your invite to {organization}");
        tokio::spawn(async move {
            if let Err(error) = mailer.send(None, &to, &subject, text).await {
                tracing::warn!(error = error.detail, "an invite could not be mailed");
            }
        });
    }

    /// Sends a text. Repeats of a mail have the same id, by which mailboxes recognize them.
    pub async fn send(
        &self,
        id: Option<&str>,
        to: &str,
        subject: &str,
        text: String,
    ) -> Result<(), Undelivered> {
        let never = |error: &dyn std::fmt::Display| Undelivered { is_final: true, detail: error.to_string() };
        let message = Message::builder()
            .message_id(id.map(|id| format!("<{id}@{}>", self.from.email.domain())))
            .from(self.from.clone())
            .to(to.parse().map_err(|error: lettre::address::AddressError| never(&error))?)
            .subject(subject)
            .header(ContentType::TEXT_PLAIN)
            .body(text)
            .map_err(|error| never(&error))?;
        let sent = self.transport.send(message).await;
        sent.map(drop)
            .map_err(|error| Undelivered { is_final: error.is_permanent(), detail: error.to_string() })
    }
}

//! E-mail, if a mail server is configured.

use lettre::message::{Mailbox, header::ContentType};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

/// Why mail cannot be sent with these settings.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The server.
    #[error("the mail server's URL cannot be used: {0}")]
    Server(#[from] lettre::transport::smtp::Error),
    /// The sender.
    #[error("the sender's address cannot be used: {0}")]
    Sender(#[from] lettre::address::AddressError),
}

/// Sends mail.
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
        let message = to.parse().map_err(|error| format!("{error}")).and_then(|to| {
            Message::builder()
                .from(self.from.clone())
                .to(to)
                .subject(format!("Your invite to {organization}"))
                .header(ContentType::TEXT_PLAIN)
                .body(text)
                .map_err(|error| error.to_string())
        });
        let transport = self.transport.clone();
        tokio::spawn(async move {
            let sent = match message {
                Ok(message) => transport.send(message).await.map(drop).map_err(|error| error.to_string()),
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                tracing::warn!(error, "an invite could not be mailed");
            }
        });
    }
}

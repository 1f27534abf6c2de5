//! Signing in with a browser: the terminal shows a code, and waits until a person has approved it.

use std::time::{Duration, Instant};

use podium_api::device_sign_ins::{self as api, StartedDeviceSignIn};
use podium_client::{Call, Client, Error};
use serde_json::{Value, json};

use crate::client::browser;
use crate::client::ending::{Exit, Failed, Outcome, one_line};
use crate::client::session::text;

/// How long is waited, whatever the server says.
const LONGEST: Duration = Duration::from_mins(15);

/// Signs in with a browser, here or elsewhere; none if the server does not do that.
pub(super) async fn session_token(client: &Client, opens_browser: bool) -> Outcome<Option<String>> {
    let body = json!({ "clientName": machine() });
    let started = client.send::<StartedDeviceSignIn>(Call::to::<api::Start>(&()).body(&body)?).await;
    let started = match started {
        Ok(started) => started.body,
        Err(error) if matches!(error.status(), Some(403 | 404)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (url, code) = (one_line(&started.verification_url), one_line(&started.user_code));
    if opens_browser && browser::open(&url) {
        eprintln!("Opened {url}");
        eprintln!("Approve the sign-in there if the page shows the code {code}.");
    } else {
        eprintln!("Open {url}");
        eprintln!("in a browser, on any machine, and approve the code {code}.");
    }
    wait(client, &started).await.map(Some)
}

/// Asks until it was decided. A server that restarts meanwhile is asked again.
async fn wait(client: &Client, started: &StartedDeviceSignIn) -> Outcome<String> {
    let deadline = Instant::now() + LONGEST;
    let pause = Duration::from_secs(started.interval_seconds.clamp(1, 60).into());
    let expired =
        || Failed::new(Exit::Refused, "nobody approved the sign-in in time").hint("Run podium login again.");
    let body = json!({ "deviceCode": started.device_code });
    while Instant::now() < deadline {
        tokio::time::sleep(pause).await;
        let asked = client.send::<Value>(Call::to::<api::Finish>(&()).body(&body)?).await;
        let progress = match asked {
            Ok(progress) => progress.body,
            Err(error) if error.status() == Some(404) => return Err(expired()),
            Err(Error::Unreachable { .. }) => continue,
            Err(error) if matches!(error.status(), Some(429 | 500..=504)) => continue,
            Err(error) => return Err(error.into()),
        };
        // A newer server may know more words: whatever is neither is not decided yet.
        match (text(&progress["status"]), progress["session"]["token"].as_str()) {
            ("APPROVED", Some(token)) => return Ok(token.to_owned()),
            ("DENIED", _) => {
                return Err(
                    Failed::new(Exit::Refused, "the sign-in was denied").hint("To try again: podium login")
                );
            }
            _ => {}
        }
    }
    Err(expired())
}

/// What the person who approves it reads: who is at which machine.
fn machine() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    match std::env::var("USER") {
        Ok(user) if !user.is_empty() => format!("{user}@{host}").chars().take(128).collect(),
        _ => host.chars().take(128).collect(),
    }
}

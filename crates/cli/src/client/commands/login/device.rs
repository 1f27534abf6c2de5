//! Signing in with a browser: the terminal shows a code, and waits until a person has approved it.

use std::time::{Duration, Instant};

use podium_api::Nothing;
use podium_api::auth::Session;
use podium_api::device_sign_ins::{self as api, StartedDeviceSignIn};
use podium_api::enums::DeviceSignInStatus;
use podium_api::enums::ErrorCode::{self, Internal, TooManyRequests, Unavailable};
use podium_client::{Call, Client, Error};
use serde::Deserialize;

use crate::client::browser;
use crate::client::commands::{Exit, Failed, Outcome, Word, one_line};

/// How long is waited, whatever the server says.
const LONGEST: Duration = Duration::from_mins(15);

/// How far the sign-in has come.
#[derive(Deserialize)]
struct Progress {
    status: Word<DeviceSignInStatus>,
    session: Option<Session>,
}

/// Signs in with a browser, here or elsewhere; none if the server does not do that.
pub(super) async fn session_token(client: &Client, opens_browser: bool) -> Outcome<Option<String>> {
    let body = api::StartDeviceSignInRequest { client_name: Some(machine()) };
    let started = match client.call::<api::Start>(&(), &Nothing, &body).await {
        Ok(started) => started.body,
        Err(error) if matches!(error.code(), Some(ErrorCode::Forbidden | ErrorCode::NotFound)) => {
            return Ok(None);
        }
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
    let body = api::FinishDeviceSignInRequest { device_code: started.device_code.clone() };
    while Instant::now() < deadline {
        tokio::time::sleep(pause).await;
        let asked = client.send::<Progress>(Call::to::<api::Finish>(&()).body(&body)?).await;
        let progress = match asked {
            Ok(progress) => progress.body,
            Err(error) if error.code() == Some(ErrorCode::NotFound) => return Err(expired()),
            Err(Error::Unreachable { .. }) => continue,
            Err(error) if matches!(error.code(), Some(TooManyRequests | Internal | Unavailable)) => continue,
            Err(error) => return Err(error.into()),
        };
        // A newer server may know more words: whatever is neither is not decided yet.
        match (progress.status.known(), progress.session) {
            (Some(DeviceSignInStatus::Approved), Some(session)) => return Ok(session.token),
            (Some(DeviceSignInStatus::Denied), _) => {
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

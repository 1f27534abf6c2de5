//! A server that does not answer yet: it may be starting, and is waited for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use podium_server::SOCKET;

use super::{Session, Setup, Target, own_token};
use crate::client::contexts::Contexts;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::operator;
use crate::client::progress::{Progress, pause};

/// How long a server that does not answer yet is waited for.
const STARTING: Duration = Duration::from_secs(30);
/// How long one is waited for that has not even made its data directory, which is the first thing that it does.
const APPEARING: Duration = Duration::from_secs(10);

impl Setup {
    /// Finds out which server to call, and as whom; a server that does not answer yet is waited for.
    pub(crate) async fn open_patiently(&self) -> Outcome<Session> {
        let (began, mut progress, mut round) = (Instant::now(), None, 0);
        let mut opened = self.open();
        loop {
            let (failed, patience) = match &opened {
                Ok(session) => {
                    let deadline = began + STARTING;
                    let failed = match tokio::time::timeout_at(deadline.into(), session.knock()).await {
                        Ok(Err(failed)) if failed.is_passing() => failed,
                        Ok(Err(failed)) => return Err(failed),
                        Ok(Ok(())) => return opened,
                        Err(_) => Failed::new(Exit::Unreachable, "the server does not answer"),
                    };
                    (failed, STARTING)
                }
                Err(_) => match self.target.starts_here()? {
                    Some(directory) if directory.is_dir() => (operator::absent(&directory), STARTING),
                    Some(directory) => (operator::absent(&directory), APPEARING),
                    None => return opened,
                },
            };
            if began.elapsed() > patience {
                return opened.and(Err(failed));
            }
            let reason = failed.reason();
            let waiting = format!("Waiting up to {} s for the server: {reason}", patience.as_secs());
            progress.get_or_insert_with(Progress::new).say(&waiting);
            pause(&mut round).await;
            if opened.is_err() {
                opened = self.open();
            }
        }
    }
}

impl Target {
    /// The data directory on this machine whose server would be used if it served. It may not be there yet.
    fn starts_here(&self) -> Outcome<Option<PathBuf>> {
        let directory = match &self.data_dir {
            Some(directory) => directory.clone(),
            None if self.is_named() || own_token().is_some() => return Ok(None),
            None if !Contexts::read()?.contexts.is_empty() => return Ok(None),
            None => operator::directory(),
        };
        Ok(Some(directory).filter(|directory| !directory.join(SOCKET).exists()))
    }
}

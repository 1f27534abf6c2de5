//! Drains: writes the file that asks the executor to accept no further tasks, and waits for what it reports.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use podium_airflow::drain::{DRAINED, DrainRequest, LONGEST_WAITING, WAITING, waiting};
use podium_api::Timestamp;
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use rustix::fs::{Mode, OFlags};
use tokio::time::Instant;

use super::{SupervisedProcess, Supervisor};
use crate::Environment;
use crate::blocking::{assert_may_block, blocking, blocking_exclusive};
use crate::local::layout::{Place, missing_is_none, write_whole};
use crate::local::program::ReplaceStrategy;

pub(super) struct Drain {
    request: DrainRequest,
    /// When waiting ends.
    deadline: Instant,
    /// The same as a timestamp, for users.
    until: Timestamp,
}

impl Supervisor {
    /// How long tasks may take to finish.
    pub(super) fn drain_grace(&self, environment: &Environment) -> Duration {
        environment.drain_grace().unwrap_or(self.timing().drain)
    }

    /// Asks the executor to accept no further tasks, unless that was done before; returns until when to wait for the
    /// running ones.
    pub(super) async fn begin_drain(&mut self, grace: Duration) -> Timestamp {
        if let Some(drain) = &self.drain {
            return drain.until;
        }
        let now = (self.plane.services.clock)();
        let (request, written) = ask(&self.place, now).await;
        if let Err(error) = written {
            tracing::error!(id = %self.id, %error, "tasks cannot be drained");
        }
        let until = request.made_at + grace;
        let left = u64::try_from(until.millis() - now.millis()).unwrap_or(0);
        let deadline = Instant::now() + Duration::from_millis(left).min(grace);
        self.drain = Some(Drain { request, deadline, until });
        until
    }

    /// Whether no task is running any more, or waiting has ended; reports what it waits for.
    pub(super) async fn is_drained(&self) -> bool {
        let Some(drain) = &self.drain else { return false };
        let (status, request) = (self.place.status(), drain.request);
        let (is_done, waits_for) = blocking(move || {
            let said = read_untrusted(&status.join(DRAINED), request.text().len());
            let waiting = read_untrusted(&status.join(WAITING), LONGEST_WAITING);
            (request.is_done(said.as_deref()), request.waits_for(waiting.as_deref()))
        })
        .await;
        let is_drained = is_done || self.is_forced() || Instant::now() >= drain.deadline;
        match is_drained {
            true => self.view.change(|status| status.progress = None),
            false => self.view.report_progress(RolloutProgress {
                step: RolloutStep::Drain,
                done: None,
                message: None,
                waits_for,
            }),
        }
        is_drained
    }

    /// Whether running tasks are not waited for any more.
    pub(super) fn is_forced(&self) -> bool {
        *self.controls.force.borrow()
    }

    /// How long processes may take to exit that run no tasks any more, or whose tasks are not waited for.
    pub(super) fn stop_grace(&self) -> Duration {
        if self.is_forced() { self.timing().short_grace } else { self.timing().grace }
    }

    /// Reports workers that finish their tasks before they exit.
    pub(super) fn report_finishing(&self) {
        let finishes =
            |kept: &SupervisedProcess| kept.strategy == ReplaceStrategy::Finish && kept.kill_at.is_some();
        if self.processes.values().any(finishes) {
            self.view.step(
                RolloutStep::Drain,
                None,
                Some("waiting for workers to finish their tasks".into()),
            );
        }
    }

    /// Stops the workers, which finish their tasks first, and the scheduler, which would send them more; returns `false` if
    /// another order has arrived.
    pub(super) async fn finish_workers(&mut self, grace: Duration) -> bool {
        let is_worker = |kept: &SupervisedProcess| kept.strategy == ReplaceStrategy::Finish;
        if !self.processes.values().any(is_worker) {
            return true;
        }
        let stopped = self.processes.iter().filter(|(name, kept)| is_worker(kept) || *name == "scheduler");
        let stopped: Vec<String> = stopped.map(|(name, _)| name.clone()).collect();
        self.view.step(RolloutStep::Drain, None, Some("waiting for workers to finish their tasks".into()));
        let (mut orders, mut force) = (self.orders.clone(), self.controls.force.subscribe());
        tokio::select! {
            () = self.stop(stopped, grace) => {}
            // They are stopped with everything else.
            _ = force.wait_for(|is_forced| *is_forced) => {}
            _ = orders.changed() => return false,
        }
        self.view.change(|status| status.progress = None);
        true
    }

    /// Waits for running tasks of an environment that is being removed.
    pub(super) async fn drain_before_removal(&mut self, until: Timestamp) {
        let left = until.millis() - (self.plane.services.clock)().millis();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        self.controls.force.send_replace(false);
        if !left.is_zero() && self.drain_within("removing the environment", left, Some(until)).await {
            self.finish_workers(left).await;
        }
    }

    /// Lets the executor accept tasks again.
    pub(super) async fn end_drain(&mut self) {
        self.drain = None;
        self.view.change(|status| {
            let drains = |progress: &RolloutProgress| progress.step == RolloutStep::Drain;
            status.progress = status.progress.take().filter(|progress| !drains(progress));
        });
        let path = self.place.drain();
        let ended = blocking_exclusive(&self.place.control(), move || fs::remove_file(path)).await;
        if let Err(error) = missing_is_none(ended) {
            tracing::error!(id = %self.id, %error, "a drain cannot be ended");
        }
    }

    /// Waits for running tasks before everything stops; returns `false` if another order has arrived.
    pub(super) async fn drain_before(&mut self, what: &'static str, environment: &Environment) -> bool {
        self.drain_within(what, self.drain_grace(environment), None).await
    }

    /// The same for this long, or until a time that was set before a restart of the control plane.
    pub(super) async fn drain_within(
        &mut self,
        what: &'static str,
        grace: Duration,
        ends_at: Option<Timestamp>,
    ) -> bool {
        let scheduler = self.processes.get("scheduler").filter(|kept| kept.kill_at.is_none());
        if scheduler.is_none_or(|kept| kept.strategy != ReplaceStrategy::Drain)
            || !self.may_run_tasks("scheduler").await
        {
            return true;
        }
        let mut until = self.begin_drain(grace).await;
        if let (Some(ends_at), Some(drain)) = (ends_at, &mut self.drain) {
            (drain.until, drain.deadline) = (ends_at, Instant::now() + grace);
            until = ends_at;
        }
        self.view.wait_for("scheduler", waiting(what, until));
        let (mut orders, mut force) = (self.orders.clone(), self.controls.force.subscribe());
        while !self.is_drained().await {
            let Some(scheduler) = self.processes.get("scheduler") else { break };
            tokio::select! {
                () = scheduler.process.ended() => break,
                () = tokio::time::sleep(self.timing().startup_poll) => {}
                _ = force.wait_for(|is_forced| *is_forced) => {}
                _ = orders.changed() => return false,
            }
        }
        true
    }
}

/// Writes the file that asks for a drain. One from before a restart of the control plane continues.
pub(in crate::local) async fn ask(place: &Place, now: Timestamp) -> (DrainRequest, io::Result<()>) {
    let path = place.drain();
    let asked = blocking_exclusive(&place.control(), move || {
        let begun = fs::read_to_string(&path).ok().and_then(|text| DrainRequest::parse(&text));
        let request = begun.unwrap_or(DrainRequest { made_at: now });
        (request, write_whole(&path, request.text().as_bytes(), 0o644))
    });
    asked.await
}

/// Reads the beginning of a file that untrusted code owns: without following a link, and without blocking on a pipe.
fn read_untrusted(path: &Path, length: usize) -> Option<Vec<u8>> {
    assert_may_block();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty()).ok()?);
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut bytes = Vec::new();
    file.take(length as u64 + 1).read_to_end(&mut bytes).ok().filter(|_| is_file)?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_files_are_read_without_blocking_or_following_links() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "1234567").unwrap();
        assert_eq!(read_untrusted(&at("file"), 7).as_deref(), Some(&b"1234567"[..]));
        assert_eq!(
            read_untrusted(&at("file"), 3).map(|bytes| bytes.len()),
            Some(4),
            "no more than is needed"
        );
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        assert_eq!(read_untrusted(&at("link"), 7), None);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        assert_eq!(read_untrusted(&at("pipe"), 7), None);
        assert_eq!(read_untrusted(&at("nothing"), 7), None);
    }
}

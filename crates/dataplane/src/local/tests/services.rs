//! The services of a plane in these tests.

use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::events::{SpoolBatch, SpoolState};

use crate::{Archive, Archives, Claims, LogLine, Logs, PlaneFuture};

/// A key that shows wherever it is written.
pub(crate) fn key(id: DeploymentId, purpose: &str) -> String {
    format!("planted-key-{purpose}-{id}-which-is-long-enough")
}

/// Has every version: one file with its name. One that begins with `project` is a project, which requires the words of its
/// name that contain `package`. `missing` is not there, and `impossible` cannot be unpacked.
pub(crate) struct ArchiveFixture;

impl Archives for ArchiveFixture {
    fn open<'a>(&'a self, _: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut append = |name: &str, text: &str| {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        };
        if version.starts_with("project") {
            append("dags/dag.py", version);
            let required: Vec<&str> = version.split('-').filter(|word| word.contains("package")).collect();
            append("requirements.txt", &required.join("\n"));
        } else {
            append("dag.py", version);
        }
        if version == "impossible" {
            append("dag.py/inside.py", version);
        }
        let archive: Archive = Box::new(std::io::Cursor::new(tar.into_inner().unwrap().finish().unwrap()));
        Box::pin(async move { Ok(Some(archive).filter(|_| version != "missing")) })
    }
}

/// Takes every line, and keeps what it says.
#[derive(Default)]
pub(crate) struct KeptLines(Mutex<Vec<String>>);

impl KeptLines {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Logs for KeptLines {
    fn append(&self, lines: Vec<LogLine>) -> PlaneFuture<'_, ()> {
        self.0.lock().unwrap().extend(lines.into_iter().map(|line| line.text));
        Box::pin(async { Ok(()) })
    }
}

/// Takes every event, and keeps none.
pub(crate) struct NoClaims;

impl Claims for NoClaims {
    fn state(&self, _: DeploymentId) -> PlaneFuture<'_, SpoolState> {
        Box::pin(async { Ok(SpoolState::new(Timestamp::from_millis(0))) })
    }

    fn record(&self, _: DeploymentId, batch: SpoolBatch) -> PlaneFuture<'_, Option<SpoolState>> {
        let mut state = SpoolState::new(Timestamp::from_millis(0));
        state.position = batch.to;
        Box::pin(async move { Ok(Some(state)) })
    }
}

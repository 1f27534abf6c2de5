//! Runs the package installer: as a user of its own or confined by the kernel, within limits, with the network but
//! without anything of the control plane or of an environment. Why packages cannot be had is said in words for their
//! author or for the operator.
//!
//! It runs no code of authors: it reads their requirements, and downloads and unpacks wheels. Still, what it reads
//! comes from outside.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use podium_airflow::settings::{Variables, marker};
use podium_api::{DeploymentId, Id};
use podium_domain::{Quoted, Reason, UserText};
use tokio::time::{Instant, timeout};

use crate::Secret;
use crate::blocking::{assert_may_block, blocking};
use crate::local::command::run_group;
use crate::local::disk_space::{FEWEST_FILES, FreeSpace};
use crate::local::isolation::Isolation;
use crate::local::prepare_error::PrepareError;
use crate::local::runtimes::Runtime;
use crate::local::trees::Walk;

/// How long a job may take.
const LONGEST: Duration = Duration::from_mins(30);
/// How much disk a job may use, with everything that it downloads.
pub(super) const MOST_BYTES: u64 = 8 << 30;
/// How many files it may create, with those of its cache.
pub(super) const MOST_FILES: u64 = 400_000;
/// The least that a file counts, because its directory entry takes space too.
const SMALLEST: u64 = 4096;
/// The shortest pause between two checks of its disk usage; it is longer if a check takes long.
const PAUSE: Duration = Duration::from_secs(1);
/// How much longer than a check the pause after it is.
const REST: u32 = 5;
/// How much memory a process of it may use, in KiB.
const MOST_MEMORY: u64 = 4 << 20;
/// How much of the end of its output is kept.
const KEPT_OUTPUT: usize = 16 * 1024;

/// Variables of the control plane that the installer gets: the operator's indexes, proxies and certificates.
const PASSED_ON: &str = "ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY SSL_CERT_DIR SSL_CERT_FILE UV_DEFAULT_INDEX \
                         UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_HTTP_TIMEOUT UV_INDEX UV_INDEX_STRATEGY UV_INDEX_URL \
                         UV_INSECURE_HOST UV_NATIVE_TLS UV_SYSTEM_CERTS all_proxy http_proxy https_proxy no_proxy";
const CREDENTIALS: &str = "UV_INDEX_";

#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    #[error("it took more than {} minutes", LONGEST.as_secs() / 60)]
    TooLong,
    #[error("it used more than {0} bytes of disk")]
    TooLarge(u64),
    #[error("it created more than {MOST_FILES} files")]
    TooMany,
    #[error("the disk is full")]
    DiskFull,
    /// It failed, with the end of its output.
    #[error("{said} ({status})")]
    Failed { said: String, status: ExitStatus },
}

/// The installer in a directory of its own.
pub(super) struct Job {
    pub(super) isolation: Isolation,
    pub(super) directory: PathBuf,
    /// How many bytes to keep free on the disk.
    pub(super) reserve: u64,
    /// How many bytes it may use.
    pub(super) most_bytes: u64,
}

impl Job {
    /// Runs a command to completion. Dropping the future ends it.
    pub(super) async fn run(&self, arguments: &[OsString]) -> Result<(), JobError> {
        let mut command = self.isolation.command(&limited(arguments), &variables(&self.directory));
        command.current_dir(&self.directory).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut tail = Tail::default();
        let add = |bytes: &[u8]| {
            tail.add(bytes);
            Ok(())
        };
        let watch = async {
            let mut pause = PAUSE;
            loop {
                tokio::time::sleep(pause).await;
                let begun = Instant::now();
                if let Err(error) = self.check_disk().await {
                    return error;
                }
                pause = PAUSE.max(begun.elapsed() * REST);
            }
        };
        let too_long = async { timeout(LONGEST, watch).await.unwrap_or(JobError::TooLong) };
        // Nothing of it holds the output open once its group has ended.
        let status = run_group(command, |child| child.stderr.take(), LONGEST, add, too_long).await?;
        self.check_disk().await?;
        if status.success() { Ok(()) } else { Err(JobError::Failed { said: tail.text(), status }) }
    }

    async fn check_disk(&self) -> Result<(), JobError> {
        let (directory, reserve, most) = (self.directory.clone(), self.reserve, self.most_bytes);
        blocking(move || {
            let free = FreeSpace::of(&directory)?;
            let has_files = reserve == 0 || free.files.is_none_or(|files| files >= FEWEST_FILES);
            if free.bytes < reserve || !has_files {
                return Err(JobError::DiskFull);
            }
            match size(&directory)? {
                None => Err(JobError::TooMany),
                Some(bytes) if bytes > most => Err(JobError::TooLarge(most)),
                Some(_) => Ok(()),
            }
        })
        .await
    }
}

/// The disk usage of everything in a directory, in bytes; `None` if it has too many files. Every file counts for something,
/// however empty it is.
pub(super) fn size(directory: &Path) -> io::Result<Option<u64>> {
    assert_may_block();
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let most = usize::try_from(MOST_FILES).unwrap_or(usize::MAX);
    let is_all = Walk::new(directory)?.advance(most, |entry| {
        let blocks = u64::try_from(entry.stat.st_blocks).unwrap_or_default().saturating_mul(512);
        bytes = bytes.saturating_add(blocks.max(SMALLEST));
        files += 1;
        Ok(())
    })?;
    Ok((is_all && files < MOST_FILES).then_some(bytes))
}

/// A command line with limits on memory, and on the size of a file in blocks of 512 bytes.
fn limited(arguments: &[OsString]) -> Vec<OsString> {
    let script =
        format!("ulimit -d {MOST_MEMORY}; ulimit -f {}; ulimit -c 0; exec \"$0\" \"$@\"", MOST_BYTES / 512);
    ["/bin/sh".into(), "-c".into(), script.into()].into_iter().chain(arguments.iter().cloned()).collect()
}

/// The environment that jobs belong to: none.
pub(super) fn owner() -> DeploymentId {
    DeploymentId::from_raw(Id::from_parts(0, 0, 0))
}

/// The variables of the installer, all of them.
fn variables(directory: &Path) -> Variables {
    let text = |path: &Path| Secret::new(path.display().to_string());
    let passed = std::env::vars()
        .filter(|(name, _)| PASSED_ON.split(' ').any(|known| known == name) || name.starts_with(CREDENTIALS));
    let mut all: Variables = passed.map(|(name, value)| (name, Secret::new(value))).collect();
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("NO_COLOR", "1"),
        ("UV_NO_PROGRESS", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("UV_LINK_MODE", "copy"),
    ] {
        all.insert(name.into(), Secret::new(value.into()));
    }
    let (marker, owner) = marker(owner());
    all.insert(marker, Secret::new(owner));
    all.insert("HOME".into(), text(directory));
    all.insert("TMPDIR".into(), text(&directory.join("tmp")));
    all.insert("UV_CACHE_DIR".into(), text(&directory.join("cache")));
    all
}

/// The files that the operator's variables name, which the installer has to read.
pub(super) fn certificates() -> Vec<PathBuf> {
    let named = ["SSL_CERT_DIR", "SSL_CERT_FILE"].iter().filter_map(std::env::var_os);
    let links = find_links(std::env::var_os("UV_FIND_LINKS").as_deref()).into_iter();
    let is_path = |link: &OsString| !link.to_string_lossy().contains("://");
    named.chain(links.filter(is_path)).map(Into::into).collect()
}

/// The places of wheels that the operator's variable names, which are separated by commas.
pub(super) fn find_links(variable: Option<&OsStr>) -> Vec<OsString> {
    let links = variable.map(OsStr::as_bytes).unwrap_or_default().split(|byte| *byte == b',');
    links.filter(|link| !link.is_empty()).map(|link| OsStr::from_bytes(link).to_owned()).collect()
}

/// The end of an output.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(KEPT_OUTPUT);
        self.0.drain(..over);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// Words of the installer that say that an index could not be reached, rather than that requirements are wrong.
const UNREACHABLE: &[&str] = &[
    "Failed to fetch",
    "Could not connect",
    "error sending request",
    "dns error",
    "timed out",
    "Connection re",
    "No space left",
    "os error",
];

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
pub(super) fn broken(error: io::Error) -> PrepareError {
    PrepareError::Wait("packages", Reason::of_io("the project's packages cannot be installed now", &error))
}

/// Whether a job failed because the index could not be reached.
fn is_unreachable(said: &str) -> bool {
    UNREACHABLE.iter().any(|words| said.contains(words))
}

/// Why requirements could not be resolved.
pub(super) fn unresolved(error: &JobError, runtime: &Runtime) -> PrepareError {
    let JobError::Failed { said, .. } = error else { return failed(error) };
    if is_unreachable(said) {
        return PrepareError::Wait(
            "packages",
            Reason::new("the package index cannot be reached", last_line(said)),
        );
    }
    // The resolver always says why requirements do not resolve; one that says nothing was killed.
    if said.trim().is_empty() {
        return failed(error);
    }
    let mut told = UserText::filled(
        "the packages of requirements.txt do not resolve: {} (Apache Airflow {} and the packages that come with it keep their versions.)",
        &[&Quoted::resolver(&explanation(said)), &runtime.version],
    );
    if said.contains("no usable wheels") || said.contains("no wheels") || said.contains("Wheels are required")
    {
        told = UserText::joined(
            [told, "Only packages with wheels can be installed here: nothing is built from source.".into()],
            " ",
        );
    }
    PrepareError::Refused(Reason::new(told, last_line(said)))
}

/// Why resolved packages could not be installed.
pub(super) fn uninstalled(error: &JobError) -> PrepareError {
    match error {
        JobError::Failed { said, .. } if is_unreachable(said) => PrepareError::Wait(
            "packages",
            Reason::new("the package index cannot be reached", last_line(said)),
        ),
        JobError::Failed { said, .. } if !said.trim().is_empty() => PrepareError::Refused(Reason::new(
            UserText::filled(
                "the project's packages cannot be installed: {}",
                &[&Quoted::resolver(&explanation(said))],
            ),
            last_line(said),
        )),
        _ => failed(error),
    }
}

fn failed(error: &JobError) -> PrepareError {
    match error {
        JobError::TooLarge(most) => PrepareError::Refused(
            UserText::filled("the project's packages need more than {} MiB of disk", &[&(*most >> 20)])
                .into(),
        ),
        JobError::TooMany => PrepareError::Refused(
            UserText::filled("the project's packages have more than {} files", &[&MOST_FILES]).into(),
        ),
        JobError::TooLong => PrepareError::Refused("installing the project's packages took too long".into()),
        JobError::DiskFull => PrepareError::Wait(
            "packages",
            "the project's packages cannot be installed: the disk is full".into(),
        ),
        JobError::NotRun(_) | JobError::Failed { .. } => PrepareError::Wait(
            "packages",
            Reason::new("the project's packages cannot be installed now", error),
        ),
    }
}

/// What the resolver says about the requirements, without its decoration and advice.
fn explanation(said: &str) -> String {
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let lines = said.lines().map(str::trim).take_while(|line| !line.starts_with("hint:"));
    let words = lines.flat_map(str::split_whitespace).filter(is_word);
    let words = words.collect::<Vec<_>>().join(" ");
    let because = words.find("Because").map_or(words.as_str(), |at| &words[at..]);
    because.trim_start_matches("error: ").to_owned()
}

fn last_line(said: &str) -> String {
    said.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .chars()
        .take(300)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &str) -> Result<(), JobError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let job = Job { isolation: Isolation::NONE, directory: path, reserve: 0, most_bytes: 1 << 20 };
        job.run(&["/bin/sh".into(), "-c".into(), script.into()]).await
    }

    #[tokio::test]
    async fn a_job_is_charged_for_empty_files_too() {
        run("i=0; while [ $i -lt 100 ]; do : >$i; i=$((i+1)); done").await.unwrap();
        let script = "i=0; while [ $i -lt 300 ]; do : >$i; i=$((i+1)); done";
        assert!(matches!(run(script).await, Err(JobError::TooLarge(_))));
        // A hole takes no space.
        run("truncate -s 1G hole").await.unwrap();
    }

    #[test]
    fn places_of_wheels_are_separated_by_commas() {
        let links = |text: &str| find_links(Some(OsStr::new(text)));
        assert_eq!(links("/srv/wheels,https://wheels.example/"), ["/srv/wheels", "https://wheels.example/"]);
        assert_eq!(links(",/srv/wheels,"), ["/srv/wheels"]);
        assert_eq!(find_links(None), Vec::<OsString>::new());
    }

    #[tokio::test]
    async fn a_job_fails_with_the_end_of_what_it_said() {
        run("true").await.unwrap();
        let script = "seq 100000 >&2; echo the-end >&2; exit 3";
        let Err(JobError::Failed { said, status }) = run(script).await else { panic!("it succeeded") };
        assert!(said.len() <= KEPT_OUTPUT && said.ends_with("100000\nthe-end\n"));
        assert_eq!(status.code(), Some(3));
    }

    #[tokio::test]
    async fn what_a_job_leaves_running_is_ended_with_it() {
        // It would hold the output open for ever.
        run("sleep 100000 & exit 0").await.unwrap();
    }

    #[tokio::test]
    async fn a_job_gets_no_variables_of_the_control_plane_except_those_of_the_operators_indexes() {
        let said = match run("env | cut -d= -f1 | sort >&2; exit 1").await {
            Err(JobError::Failed { said, .. }) => said,
            other => panic!("{other:?}"),
        };
        let shell = ["PWD", "_", "OLDPWD", "SHLVL"];
        let ours = ["HOME", "LANG", "NO_COLOR", "PATH", "PODIUM_ENVIRONMENT", "TMPDIR"];
        for name in said.lines() {
            let is_known = ours.contains(&name)
                || shell.contains(&name)
                || name.starts_with("UV_")
                || PASSED_ON.split(' ').any(|known| known == name);
            assert!(is_known, "{name}");
        }
    }
}

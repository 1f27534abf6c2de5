//! Where code comes from: the commit of a clean work tree.
//!
//! A folder may be somebody else's, with a `.git` that names programs for git to run. None of them is.

use std::path::Path;
use std::process::{Command, Stdio};

use podium_api::deploys::CreateDeployGitRequest;
use podium_api::enums::GitProvider;

/// Why there is no commit to name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoCommit {
    NotInGit,
    Changed,
    NoRemote,
}

impl std::fmt::Display for NoCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotInGit => "the folder is not in a git work tree",
            Self::Changed => "there are uncommitted changes",
            Self::NoRemote => "the work tree has no remote named origin",
        })
    }
}

/// The commit of a folder, as the API takes it.
pub(super) fn describe(folder: &Path) -> Result<CreateDeployGitRequest, NoCommit> {
    let commit = git(folder, &["rev-parse", "HEAD"]).ok_or(NoCommit::NotInGit)?;
    // Of submodules only the commit counts: their settings are not looked at.
    let status = ["status", "--porcelain", "--ignore-submodules=dirty", "--", "."];
    let changes = git(folder, &status).ok_or(NoCommit::NotInGit)?;
    if !changes.is_empty() {
        return Err(NoCommit::Changed);
    }
    let remote = git(folder, &["remote", "get-url", "origin"]).ok_or(NoCommit::NoRemote)?;
    let branch = git(folder, &["symbolic-ref", "--short", "HEAD"]);
    let author = git(folder, &["log", "-1", "--format=%an"]);
    let path = git(folder, &["rev-parse", "--show-prefix"]).map(|path| path.trim_end_matches('/').to_owned());
    Ok(CreateDeployGitRequest {
        provider: GitProvider::Generic,
        commit_sha: commit,
        account: None,
        repo: None,
        branch,
        path: path.filter(|path| !path.is_empty()),
        remote_url: Some(without_password(&remote)),
        commit_url: None,
        before_commit_sha: None,
        author_name: author,
        author_username: None,
        author_url: None,
    })
}

/// Settings of a repository that make git run a program while it is read, and what turns each off.
const HARMLESS: &[(&str, &str)] =
    &[("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null"), ("log.showSignature", "false")];

/// What git says, if it says anything without failing.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let all = say(folder, &[], &["config", "--show-scope", "--includes", "--name-only", "--list"])?;
    // A filter is a program that files are compared through. Those in the settings of the user are the user's own.
    let of_folder = |line| match str::split_once(line, '\t')? {
        ("local" | "worktree", name) => name.strip_prefix("filter.")?.rsplit_once('.'),
        _ => None,
    };
    let off = |(filter, _): (&str, &str)| {
        [("clean", ""), ("process", ""), ("required", "false")]
            .map(|(name, value)| (format!("filter.{filter}.{name}"), value))
    };
    let mut settings: Vec<(String, &str)> = all.lines().filter_map(of_folder).flat_map(off).collect();
    settings.extend(HARMLESS.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    say(folder, &settings, arguments)
}

fn say(folder: &Path, settings: &[(String, &str)], arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).env("GIT_OPTIONAL_LOCKS", "0");
    // As variables: a name may hold any character.
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (name, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), name);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// A URL without user and password: CI systems put tokens there.
fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.find('/').unwrap_or(rest.len());
            match rest[..host].rfind('@') {
                Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
                None => url.to_owned(),
            }
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, arguments: &[&str]) {
        let identity =
            ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
        let mut command = Command::new("git");
        let done = command.arg("-C").arg(folder).args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn a_clean_work_tree_names_its_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(describe(path).err(), Some(NoCommit::NotInGit));
        std::fs::create_dir(path.join("project")).unwrap();
        std::fs::write(path.join("project/a.py"), "").unwrap();
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "First"]] {
            run(path, arguments);
        }
        assert_eq!(describe(path).err(), Some(NoCommit::NoRemote));
        run(path, &["remote", "add", "origin", "https://ci:secret@git.example.com/a/b.git"]);
        let found = describe(&path.join("project")).unwrap();
        assert_eq!(found.remote_url.as_deref(), Some("https://git.example.com/a/b.git"));
        assert_eq!((found.branch.as_deref(), found.path.as_deref()), (Some("main"), Some("project")));
        assert_eq!((found.author_name.as_deref(), found.commit_sha.len()), (Some("Ada"), 40));
        std::fs::write(path.join("project/b.py"), "").unwrap();
        assert_eq!(describe(path).err(), Some(NoCommit::Changed));
    }

    #[test]
    fn a_folder_cannot_make_git_run_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (program, trace) = (path.join(".git/program"), path.join(".git/was-run"));
        for (name, text) in [("a.py", "1"), (".gitattributes", "*.py filter=theirs=own\n")] {
            std::fs::write(path.join(name), text).unwrap();
        }
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "First"]] {
            run(path, arguments);
        }
        run(path, &["remote", "add", "origin", "https://git.example.com/a/b.git"]);
        std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", trace.display())).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let program = program.to_str().unwrap();
        for name in ["core.fsmonitor", "filter.theirs=own.clean", "filter.theirs=own.process", "gpg.program"]
        {
            run(path, &["config", name, program]);
        }
        run(path, &["config", "log.showSignature", "true"]);
        // Git compares what was touched, and that through the filter.
        std::fs::File::open(path.join("a.py"))
            .and_then(|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH))
            .unwrap();
        let found = describe(path).unwrap();
        assert_eq!(found.remote_url.as_deref(), Some("https://git.example.com/a/b.git"));
        assert!(!trace.exists(), "a program of the folder was run");
    }

    #[test]
    fn a_password_stays_here() {
        assert_eq!(without_password("https://a:b@c.test/d@e"), "https://c.test/d@e");
        assert_eq!(without_password("git@c.test:d/e.git"), "git@c.test:d/e.git");
        assert_eq!(without_password("https://c.test/d"), "https://c.test/d");
    }
}

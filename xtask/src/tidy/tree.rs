//! The files that the rules look at: those of the workspace, or a made-up tree in a test.

use std::fs;
use std::path::Path;

use super::source::{Source, untested};
use crate::outcome::{Outcome, While};

/// One file; only text that a rule reads is loaded.
pub(super) struct File {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// The crate it belongs to: `teams.rs` of `crates/api/src` to `api`.
    pub(super) fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The last part of its path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is a Rust source of a crate, and not one of its tests.
    pub(super) fn is_source(&self) -> bool {
        let is_test = self.path.ends_with("/tests.rs") || self.path.contains("/tests/");
        self.is_rust() && self.path.starts_with("crates/") && self.path.contains("/src/") && !is_test
    }
}

/// All files, in order of their paths.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

impl Tree {
    /// Reads the workspace, without what git ignores.
    pub(super) fn load(root: &Path) -> Outcome<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A made-up tree.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        Self { files: files.iter().map(file).collect() }
    }

    /// Rust sources of the crates and of the tools.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Rust sources of the crates by their paths, without those of tests.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, Source)> {
        let files = self.files.iter().filter(|file| file.is_source());
        files.map(|file| (file.path.as_str(), Source::read(untested(&file.text))))
    }

    pub(super) fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.krate().is_some() && file.name() == "Cargo.toml")
    }

    /// Whether a path names a file or a directory.
    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty()
            || self.files.iter().any(|file| {
                file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }
}

fn walk(root: &Path, below: &str, files: &mut Vec<File>) -> Outcome {
    let directory = root.join(below);
    let doing = format!("reading {}", directory.display());
    for entry in fs::read_dir(&directory).doing(&doing)? {
        let entry = entry.doing(&doing)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if entry.file_type().doing(&doing)?.is_dir() {
            let is_build_output = entry.path().join("CACHEDIR.TAG").exists();
            if name != ".git" && name != "target" && name != "podium-data" && !is_build_output {
                walk(root, &path, files)?;
            }
            continue;
        }
        let is_read = [".rs", ".toml", ".md", ".lock"].iter().any(|ending| name.ends_with(ending));
        let text = if is_read { fs::read_to_string(entry.path()).doing(&path)? } else { String::new() };
        files.push(File { path, text });
    }
    Ok(())
}

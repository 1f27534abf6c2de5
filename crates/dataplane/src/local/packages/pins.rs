//! Exact packages with the hashes of their wheels, as the resolver determined them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};

use crate::blocking::{assert_may_block, blocking};
use crate::local::layout::{missing_is_none, oldest_beyond, write_whole};
use crate::local::runtimes::Runtime;

/// The largest output of the resolver.
const MOST_BYTES: u64 = 4 << 20;
/// How many resolutions of an environment are kept.
const KEPT: usize = 50;

/// The packages of a layer: one per line, with their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::local) struct Pins(String);

impl Pins {
    pub(in crate::local) fn count(&self) -> usize {
        self.0.lines().count()
    }

    /// The packages as an installer reads them.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The name of the layer with these packages over a runtime.
    pub(in crate::local) async fn key(&self, runtime: &Runtime) -> io::Result<String> {
        let (text, runtime) = (self.0.clone(), runtime.clone());
        blocking(move || Ok(hash(&[&runtime.seal()?, &text]))).await
    }
}

/// The resolution of these requirements, if this environment has resolved them before.
pub(super) fn recall(folder: &Path, runtime: &Runtime, requirements: &str) -> io::Result<Option<Pins>> {
    assert_may_block();
    let known = missing_is_none(fs::read_to_string(file(folder, runtime, requirements)?))?;
    Ok(known.map(Pins))
}

/// Keeps a resolution, and the newest others.
pub(super) fn save(folder: &Path, runtime: &Runtime, requirements: &str, pins: &Pins) -> io::Result<()> {
    assert_may_block();
    fs::create_dir_all(folder)?;
    oldest_beyond(folder, KEPT - 1, "")?.iter().try_for_each(fs::remove_file)?;
    write_whole(&file(folder, runtime, requirements)?, pins.0.as_bytes(), 0o600)
}

fn file(folder: &Path, runtime: &Runtime, requirements: &str) -> io::Result<PathBuf> {
    Ok(folder.join(format!("{}.txt", hash(&[&runtime.seal()?, requirements]))))
}

/// Reads what the resolver wrote, except for what the runtime has.
pub(super) fn read_output(path: &Path, runtime: &Runtime) -> io::Result<Pins> {
    assert_may_block();
    let mut text = String::new();
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "the resolver's output is not a file of a usual size",
        ));
    }
    fs::File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)?;
    parsed(&text, &runtime.packages()?)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the resolver's output is not understood"))
}

/// The packages in the resolver's output that are not among these.
fn parsed(text: &str, present: &BTreeSet<String>) -> Option<Pins> {
    let mut pins = String::new();
    for block in text.replace("\\\n", " ").lines() {
        let mut words = block.split_whitespace();
        let Some(package) = words.next() else { continue };
        let (name, version) = package.split_once("==")?;
        let fits = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
        };
        if !fits(name) || !fits(version) {
            return None;
        }
        let is_hash = |word: &str| {
            let digits = word.strip_prefix("--hash=sha256:");
            digits.is_some_and(|digits| digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit()))
        };
        let hashes: Vec<&str> = words.collect();
        if hashes.is_empty() || !hashes.iter().all(|word| is_hash(word)) {
            return None;
        }
        if !present.contains(&normalized(name)) {
            pins.push_str(&format!("{package} {}\n", hashes.join(" ")));
        }
    }
    Some(Pins(pins))
}

/// The name of a package in the form in which names are compared.
pub(in crate::local) fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    podium_api::hex(&hash.finish().as_ref()[..20])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runtime_has_is_left_out() {
        let hash = format!("--hash=sha256:{}", "0f".repeat(32));
        let text = format!("flask-login==1.0 \\\n    {hash} \\\n    {hash}\nzope-x==2.0+a \\\n    {hash}\n");
        let pins = parsed(&text, &BTreeSet::from(["zope-x".into()])).unwrap();
        assert_eq!(pins.text(), format!("flask-login==1.0 {hash} {hash}\n"));
        assert_eq!(pins.count(), 1);
        assert_eq!(
            parsed(&text, &BTreeSet::from(["zope-x".into(), "flask-login".into()])).unwrap().count(),
            0
        );
        for bad in ["flask==1.0", "flask @ file:///x --hash=sha256:00", "-r x", "flask==1.0 --hash=md5:00"] {
            assert_eq!(parsed(bad, &BTreeSet::new()), None, "{bad}");
        }
    }

    #[test]
    fn names_are_compared_in_one_form() {
        assert_eq!(normalized("Zope.Interface"), "zope-interface");
        assert_eq!(normalized("a__b--c"), "a-b-c");
    }
}

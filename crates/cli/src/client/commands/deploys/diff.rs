//! What a deploy of a folder changes: its files compared with those that run, and the DAGs that are in them.

mod dags;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use podium_api::enums::DeployStatus;
use podium_api::path::OfDeployment;
use podium_api::{Nothing, deploy_files, deploys};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::archive::File;
use super::report::line;
use super::{Deploy, of_deploy};
use crate::client::commands::{Outcome, Session, View};
use dags::Affected;

const VIEW: View = View::plain(
    "deployId",
    "DEPLOY deployId, ADDED files.added, CHANGED files.changed, REMOVED files.removed",
);
/// How many deploys are looked at for the one that is current.
const MOST_DEPLOYS: u64 = 1_000;
/// How long a deploy waits to learn what it changes.
const LONGEST: Duration = Duration::from_secs(60);

struct Deployed {
    deploy_id: String,
    /// Size and hash by path.
    files: BTreeMap<String, (u64, String)>,
    /// How many there are, of which the first ones are known.
    total: u64,
}

/// The names of files that differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differences {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

struct Comparison {
    /// The deploy that is current; none if nothing was deployed yet.
    deploy_id: Option<String>,
    files: Differences,
    /// Unknown if Airflow could not be asked.
    dags: Option<Affected>,
    /// What people should know about it, a line each.
    notes: Vec<String>,
    /// Whether there are files that run, and none of them is left.
    replaces_all: bool,
}

/// Shows what a deploy of these files would change.
pub(super) async fn show(session: &Session, path: OfDeployment, files: &[File]) -> Outcome {
    let compared = compare(session, path, files).await?;
    compared.notes.iter().for_each(|note| eprintln!("{note}"));
    if !session.format.is_table() {
        return session.show(&compared.to_json(), &VIEW);
    }
    let mut out = std::io::stdout().lock();
    for line in compared.lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Says what a deploy of these files changes, and returns whether it keeps no file of those that run. If that cannot be found
/// out, the deploy goes on without it.
pub(super) async fn tell(session: &Session, path: OfDeployment, files: &[File]) -> bool {
    let reason = match timeout(LONGEST, compare(session, path, files)).await {
        Ok(Ok(compared)) => {
            compared.notes.iter().chain(&compared.lines()).for_each(|line| eprintln!("{line}"));
            return compared.replaces_all;
        }
        Ok(Err(failed)) => failed.reason(),
        Err(_) => format!("it took longer than {} s", LONGEST.as_secs()),
    };
    eprintln!("Cannot compare with the running version: {}.", reason.trim_end_matches('.'));
    false
}

async fn compare(session: &Session, path: OfDeployment, files: &[File]) -> Outcome<Comparison> {
    let Some(deployed) = current(session, path).await? else {
        let added: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let notes = vec![match files.len() {
            1 => "Nothing has been deployed yet: the only file is new.".to_owned(),
            count => format!("Nothing has been deployed yet: all {count} files are new."),
        }];
        let files = Differences { added, ..Differences::default() };
        let dags = Some(Affected::default());
        return Ok(Comparison { deploy_id: None, files, dags, notes, replaces_all: false });
    };
    let mut notes = Vec::new();
    let known = deployed.files.len() as u64;
    if deployed.total > known {
        notes.push(format!("Only the first {known} of {} deployed files are compared.", deployed.total));
    }
    let differences = differences(&deployed, files)?;
    let dags = match dags::affected(session, path, &deployed.files, &differences).await {
        Ok(dags) => Some(dags),
        Err(failed) => {
            let reason = failed.reason();
            notes.push(format!("Cannot tell which DAGs are affected: {}.", reason.trim_end_matches('.')));
            None
        }
    };
    if differences == Differences::default() {
        notes.push("Nothing differs from the running version.".to_owned());
    }
    let replaces_all = known > 0 && differences.removed.len() as u64 == known;
    Ok(Comparison { deploy_id: Some(deployed.deploy_id), files: differences, dags, notes, replaces_all })
}

/// The files of the newest deploy with DAGs that was put into effect.
async fn current(session: &Session, path: OfDeployment) -> Outcome<Option<Deployed>> {
    let is_current = |deploy: &Deploy| {
        let has_dags = deploy.dag_tarball_version.as_ref().is_some_and(|version| !version.is_empty());
        deploy.status.is(DeployStatus::Deployed) && has_dags
    };
    let most = Some(MOST_DEPLOYS);
    let found = session.first::<deploys::List, _>(&path, &Nothing, most, 1, is_current).await?;
    let Some(deploy) = found.first() else { return Ok(None) };
    let deploy_id = deploy.id.to_string();
    let listed = session.get::<deploy_files::List>(&of_deploy(path, &deploy_id)?).await?.body()?;
    let files = listed.files.into_iter().map(|file| (file.path, (file.size, file.sha256))).collect();
    Ok(Some(Deployed { deploy_id, files, total: listed.total_count }))
}

/// Compares files with those of a deploy. Links are compared only with files, because deploys do not list them.
fn differences(deployed: &Deployed, files: &[File]) -> Outcome<Differences> {
    let mut differences = Differences::default();
    let last = deployed.files.keys().next_back().filter(|_| deployed.total > deployed.files.len() as u64);
    let is_compared = |name: &String| last.is_none_or(|last| name <= last);
    for file in files.iter().filter(|file| is_compared(&file.name)) {
        match deployed.files.get(&file.name) {
            Some((size, sha256)) if file.holds(*size, sha256)? => {}
            Some(_) => differences.changed.push(file.name.clone()),
            None if file.is_link() => {}
            None => differences.added.push(file.name.clone()),
        }
    }
    let here: std::collections::BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let gone = deployed.files.keys().filter(|name| !here.contains(name.as_str()));
    differences.removed.extend(gone.cloned());
    Ok(differences)
}

impl Comparison {
    /// What differs, a line each; nothing if there is nothing to compare with.
    fn lines(&self) -> Vec<String> {
        if self.deploy_id.is_none() {
            return Vec::new();
        }
        let none = Affected::default();
        let dags = self.dags.as_ref().unwrap_or(&none);
        let kinds = [
            ("Files added", &self.files.added),
            ("Files changed", &self.files.changed),
            ("Files removed", &self.files.removed),
            ("DAGs in changed files", &dags.changed),
            ("DAGs in removed files", &dags.removed),
        ];
        kinds.iter().filter_map(|(what, names)| line(what, names, names.len() as u64)).collect()
    }

    fn to_json(&self) -> Value {
        let Differences { added, changed, removed } = &self.files;
        let dags = self.dags.as_ref().map(|dags| json!({ "changed": dags.changed, "removed": dags.removed }));
        json!({
            "deployId": self.deploy_id,
            "files": { "added": added, "changed": changed, "removed": removed },
            "dags": dags,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;

    const ONE: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";

    fn deployed(files: &[(&str, u64, &str)], total: u64) -> Deployed {
        let files = files.iter().map(|(name, size, hash)| ((*name).to_owned(), (*size, (*hash).to_owned())));
        Deployed { deploy_id: String::new(), files: files.collect(), total }
    }

    fn compared(deployed: &Deployed) -> Differences {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.py", "b.py", "c.py", "z.py"] {
            std::fs::write(folder.path().join(name), "1").unwrap();
        }
        std::os::unix::fs::symlink("a.py", folder.path().join("link.py")).unwrap();
        std::os::unix::fs::symlink("a.py", folder.path().join("was-file.py")).unwrap();
        differences(deployed, &archive::files(folder.path()).unwrap()).unwrap()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn files_are_compared_by_their_content() {
        let two = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35";
        let files = [
            ("a.py", 1, ONE),
            ("b.py", 1, two),
            ("gone.py", 1, ONE),
            ("was-file.py", 1, ONE),
            ("z.py", 2, ONE),
        ];
        let expected = Differences {
            added: names(&["c.py"]),
            changed: names(&["b.py", "was-file.py", "z.py"]),
            removed: names(&["gone.py"]),
        };
        assert_eq!(compared(&deployed(&files, 5)), expected);
    }

    #[test]
    fn files_beyond_the_end_of_the_list_are_not_compared() {
        let expected = Differences { added: names(&["b.py"]), ..Differences::default() };
        assert_eq!(compared(&deployed(&[("a.py", 1, ONE), ("c.py", 1, ONE)], 100)), expected);
    }

    #[test]
    fn what_differs_is_shown_in_lines_of_bounded_length() {
        let many: Vec<String> = (0..203).map(|number| format!("{number:03}\u{1b}\n")).collect();
        let mut comparison = Comparison {
            deploy_id: Some("c1".into()),
            files: Differences { added: many, removed: names(&["old.py"]), ..Differences::default() },
            dags: Some(Affected { removed: names(&["old"]), ..Affected::default() }),
            notes: Vec::new(),
            replaces_all: false,
        };
        let lines = comparison.lines();
        assert!(lines[0].starts_with("Files added: 000\u{fffd} , 001\u{fffd} , "), "{}", lines[0]);
        assert!(lines[0].ends_with(", 199\u{fffd}  and 3 more"), "{}", lines[0]);
        assert_eq!(lines[1..], ["Files removed: old.py", "DAGs in removed files: old"]);
        comparison.dags = None;
        assert_eq!(comparison.to_json()["dags"], Value::Null);
    }
}

//! Which DAGs of a deployment are in files that differ, according to its Airflow.

use std::collections::BTreeMap;
use std::time::Duration;

use podium_api::path::OfDeployment;
use serde_json::json;
use tokio::time::timeout;

use super::Differences;
use crate::client::airflow::{Airflow, Dag};
use crate::client::commands::{Failed, Outcome, Session};

/// How many DAGs are looked at.
const MOST_DAGS: u64 = 5_000;
/// How long Airflow may take to list them.
const LONGEST: Duration = Duration::from_secs(20);
/// The folder of an archive that holds its DAGs, if there is one.
const DAGS: &str = "dags/";

/// The DAGs in files that differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Affected {
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
}

/// Asks Airflow which DAGs are in files that differ.
pub(super) async fn affected<T>(
    session: &Session,
    path: OfDeployment,
    deployed: &BTreeMap<String, T>,
    differences: &Differences,
) -> Outcome<Affected> {
    let mut affected = Affected::default();
    let folder = folder_of(deployed);
    let may_hold_dags =
        |name: &String| name.starts_with(folder) && (name.ends_with(".py") || name.ends_with(".zip"));
    if !differences.changed.iter().chain(&differences.removed).any(may_hold_dags) {
        return Ok(affected);
    }
    let asked = async {
        let airflow = Airflow::of(session, &path).await?.asked_once();
        let dags: Vec<Dag> = airflow.all(&["dags"], ("dags", &json!({})), MOST_DAGS).await?;
        let is_cut = dags.len() as u64 >= MOST_DAGS;
        for dag in dags {
            let Some(file) = file_of(&dag, deployed) else { continue };
            let is_in = |names: &[String]| names.binary_search(&file).is_ok();
            if is_in(&differences.changed) {
                affected.changed.push(dag.dag_id);
            } else if is_in(&differences.removed) {
                affected.removed.push(dag.dag_id);
            }
        }
        match is_cut {
            false => Ok(()),
            true => Err(Failed::because(format!("there are {MOST_DAGS} DAGs or more"))),
        }
    };
    let slow =
        || Failed::because(format!("Airflow took longer than {} s to list its DAGs", LONGEST.as_secs()));
    timeout(LONGEST, asked).await.unwrap_or_else(|_| Err(slow()))?;
    affected.changed.sort();
    affected.removed.sort();
    Ok(affected)
}

/// The folder of the deployed files that holds the DAGs: the one of that name, or all of them.
fn folder_of<T>(deployed: &BTreeMap<String, T>) -> &'static str {
    match deployed.range(DAGS.to_owned()..).next() {
        Some((name, _)) if name.starts_with(DAGS) => DAGS,
        _ => "",
    }
}

/// The deployed file that a DAG is in. Airflow 3 has its path below the DAGs; Airflow 2 has the path on the machine, which
/// ends with it.
fn file_of<T>(dag: &Dag, deployed: &BTreeMap<String, T>) -> Option<String> {
    let folder = folder_of(deployed);
    let find = |path: &str| {
        let names = [format!("{folder}{path}"), path.to_owned()];
        names.into_iter().find(|name| deployed.contains_key(name))
    };
    match dag.relative_fileloc.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => find(path),
        None => {
            let path = dag.fileloc.as_deref().unwrap_or_default();
            let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
            std::iter::once(path).chain(ends).find_map(find)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::answer::read;

    #[test]
    fn a_dag_is_in_the_file_that_its_path_ends_with() {
        let files = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), ())).collect();
        let in_folder: BTreeMap<String, ()> =
            files(&["a.py", "dags/a.py", "dags/sub/a.py", "dags/b.zip", "setup.cfg"]);
        let at_root: BTreeMap<String, ()> = files(&["a.py", "sub/a.py"]);
        let table = [
            (&in_folder, "relative_fileloc", "a.py", Some("dags/a.py")),
            (&in_folder, "relative_fileloc", "sub/a.py", Some("dags/sub/a.py")),
            (&in_folder, "relative_fileloc", "dags/a.py", Some("dags/a.py")),
            (&in_folder, "relative_fileloc", "other/a.py", None),
            (&in_folder, "fileloc", "/srv/code/dags/current/a.py", Some("dags/a.py")),
            (&in_folder, "fileloc", "/srv/code/dags/versions/v1/dags/sub/a.py", Some("dags/sub/a.py")),
            (&in_folder, "fileloc", "/srv/code/dags/current/none.py", None),
            (&at_root, "relative_fileloc", "sub/a.py", Some("sub/a.py")),
            (&at_root, "fileloc", "/srv/code/dags/current/sub/a.py", Some("sub/a.py")),
            (&at_root, "fileloc", "/srv/code/dags/current/a.py", Some("a.py")),
            (&at_root, "fileloc", "", None),
        ];
        for (deployed, field, path, expected) in table {
            let dag = json!({ field: path });
            assert_eq!(file_of(&read(&dag).unwrap(), deployed).as_deref(), expected, "{dag}");
        }
    }
}

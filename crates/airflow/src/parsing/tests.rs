use serde_json::json;

use super::*;

const FOLDER: DagFolder = DagFolder("/code/dags/");
const ROOT: &str = "/data/local/environments/e/code/dags";

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + second * 1000)
}

fn dag(id: &str, file: &str, parsed: i64, version: Option<&str>) -> KnownDag {
    let dag = json!({
        "dag_id": id, "fileloc": format!("{ROOT}/{file}"), "last_parsed_time": at(parsed).to_string(),
        "bundle_version": version,
    });
    serde_json::from_value(dag).unwrap()
}

fn error(file: &str, seen: i64, trace: &str) -> KnownError {
    let error = json!({ "filename": file, "timestamp": at(seen).to_string(), "stack_trace": trace });
    serde_json::from_value(error).unwrap()
}

fn parsing(files: &[&str]) -> Parsing {
    Parsing::new(FOLDER, "v2", files.iter().map(|file| (*file).to_owned()).collect(), Duration::from_secs(15))
}

#[test]
fn a_version_is_read_when_every_dag_is_at_it() {
    let mut parsing = parsing(&["a.py", "b.py"]);
    let look = |parsing: &mut Parsing, dags: &[KnownDag]| parsing.look(dags, &[], at(10), at(11));
    let old = [
        dag("a", "versions/v1/dags/a.py", 12, Some("v1")),
        dag("b", "versions/v2/dags/b.py", 12, Some("v2")),
    ];
    let seen = look(&mut parsing, &old);
    assert!(!seen.is_complete && seen.done == (1, 2), "one is still at the version before");
    assert_eq!(seen.dags.keys().collect::<Vec<_>>(), ["b"]);
    let new = [
        dag("a", "versions/v2/dags/a.py", 13, Some("v2")),
        dag("b", "versions/v2/dags/b.py", 12, Some("v2")),
    ];
    assert!(look(&mut parsing, &new).is_complete);
}

#[test]
fn versions_that_airflow_does_not_know_are_told_by_time() {
    let mut parsing = parsing(&["a.py"]);
    assert!(!parsing.look(&[dag("a", "current/a.py", 9, None)], &[], at(10), at(11)).is_complete);
    assert!(parsing.look(&[dag("a", "current/a.py", 10, None)], &[], at(10), at(11)).is_complete);
}

#[test]
fn a_file_without_dags_is_read_when_another_has_its_second_turn() {
    let mut parsing = parsing(&["a.py", "helper.py"]);
    let turn = |second| [dag("a", "current/a.py", second, None)];
    assert!(!parsing.look(&turn(11), &[], at(10), at(12)).is_complete);
    assert!(!parsing.look(&turn(11), &[], at(10), at(60)).is_complete, "time alone says nothing");
    assert!(parsing.look(&turn(16), &[], at(10), at(17)).is_complete);
}

#[test]
fn files_that_leave_no_trace_at_all_get_some_time() {
    let mut parsing = parsing(&["helper.py"]);
    assert!(!parsing.look(&[], &[], at(10), at(24)).is_complete);
    assert!(parsing.look(&[], &[], at(10), at(25)).is_complete);
    assert!(
        Parsing::new(FOLDER, "v", BTreeSet::new(), Duration::MAX).look(&[], &[], at(1), at(1)).is_complete
    );
}

#[test]
fn a_dag_that_is_gone_from_its_file_is_not_waited_for() {
    let mut parsing = parsing(&["a.py"]);
    let dags = [
        dag("left", "versions/v2/dags/a.py", 12, Some("v2")),
        dag("gone", "versions/v1/dags/a.py", 5, Some("v1")),
    ];
    let seen = parsing.look(&dags, &[], at(10), at(12));
    assert!(seen.is_complete);
    let before = BTreeSet::from(["left".into(), "gone".into()]);
    let files = reports::changes(vec![], vec!["dags/a.py".into()], vec![]);
    let changes = changed_dags(&before, &seen.dags, Some(&files), false);
    assert_eq!((changes.changed, changes.removed), (vec!["left".into()], vec!["gone".into()]));
}

#[test]
fn import_errors_have_their_file_line_and_message() {
    let trace = format!(
        "Traceback (most recent call last):\n  File \"<frozen importlib>\", line 241, in _call\n  \
         File \"{ROOT}/versions/v2/dags/sub/b.py\", line 7, in <module>\n    import nothing\n\
         ModuleNotFoundError: No module named 'nothing'\n"
    );
    let mut parsing = parsing(&["sub/b.py"]);
    let seen = parsing.look(&[], &[error("sub/b.py", 12, &trace), error("old.py", 3, "x")], at(10), at(12));
    assert!(seen.is_complete, "it is known what is wrong with it");
    let [broken] = &seen.errors[..] else { panic!("{:?}", seen.errors) };
    assert_eq!((broken.file.as_str(), broken.line), ("sub/b.py", Some(7)));
    assert_eq!(broken.message, "ModuleNotFoundError: No module named 'nothing'");
    let absolute = FOLDER.described(&error(
        &format!("{ROOT}/current/c.py"),
        1,
        &format!("  File \"{ROOT}/current/c.py\", line 3\n    x x\nSyntaxError: no"),
    ));
    assert_eq!(
        (absolute.file.as_str(), absolute.line, absolute.message.as_str()),
        ("c.py", Some(3), "SyntaxError: no")
    );
}

fn broken_in(version: &str, seen: i64) -> KnownError {
    let trace = format!(
        "Traceback (most recent call last):\n  File \"{ROOT}/{version}/a.py\", line 7, in <module>\n    x\n\
         NameError: {version}\n"
    );
    error("a.py", seen, &trace)
}

/// What was found: until Airflow notices a new version it reads the files of the one before, also after the new one went
/// live, and its error was reported of the new one.
#[test]
fn an_error_is_reported_of_the_version_that_has_it() {
    let mut parsing = parsing(&["a.py"]);
    let stale = parsing.look(&[], &[broken_in("versions/v1/dags", 12)], at(10), at(13));
    assert_eq!((stale.is_complete, stale.errors.len(), stale.done), (false, 0, (0, 1)));
    let seen = parsing.look(&[], &[broken_in("versions/v2/dags", 17)], at(10), at(18));
    assert!(seen.is_complete);
    assert_eq!(seen.errors[0].message, "NameError: versions/v2/dags");
}

#[test]
fn a_file_that_is_right_again_is_waited_for() {
    let mut parsing = parsing(&["a.py"]);
    let stale = parsing.look(
        &[dag("a", "versions/v1/dags/a.py", 3, Some("v1"))],
        &[broken_in("versions/v1/dags", 12)],
        at(10),
        at(60),
    );
    assert_eq!((stale.is_complete, stale.errors.len()), (false, 0), "however long it takes");
    let alone = parsing.look(&[], &[broken_in("versions/v1/dags", 12)], at(10), at(61));
    assert_eq!((alone.is_complete, alone.errors.len()), (false, 0), "Airflow hides DAGs of a broken file");
    let seen = parsing.look(&[dag("a", "versions/v2/dags/a.py", 62, Some("v2"))], &[], at(10), at(63));
    assert_eq!((seen.is_complete, seen.errors.len()), (true, 0));
    let unversioned = dag("a", "versions/v1/dags/a.py", 12, None);
    assert!(!self::parsing(&["a.py"]).look(&[unversioned], &[], at(10), at(13)).is_complete);
}

#[test]
fn an_error_through_the_link_is_believed_when_the_file_was_read_again() {
    let mut parsing = parsing(&["a.py"]);
    for second in [11, 12] {
        let seen = parsing.look(&[], &[broken_in("current", 11)], at(10), at(second));
        assert_eq!(
            (seen.is_complete, seen.errors.len()),
            (false, 0),
            "it may have been read before the switch"
        );
    }
    let seen = parsing.look(&[], &[broken_in("current", 16)], at(10), at(17));
    assert_eq!((seen.is_complete, seen.errors.len()), (true, 1));
}

#[test]
fn an_error_that_names_no_file_is_believed_when_airflow_has_moved_on() {
    let mut parsing = parsing(&["a.py"]);
    let timeout = |second| [error("a.py", second, "AirflowTaskTimeout: DagBag import timeout for a.py")];
    for second in [12, 24] {
        assert_eq!(parsing.look(&[], &timeout(second), at(10), at(second)).errors.len(), 0);
    }
    let seen = parsing.look(&[], &timeout(25), at(10), at(26));
    assert_eq!((seen.is_complete, seen.errors.len()), (true, 1));
}

#[test]
fn airflow_reads_files_that_mention_both_words() {
    for (text, may) in [("from AirFlow import DAG", true), ("airflow", false), ("dag", false), ("", false)] {
        assert_eq!(may_have_dags(text.into()), may, "{text}");
    }
}

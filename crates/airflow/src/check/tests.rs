use super::*;

fn error(file: &str) -> ReportedImportError {
    ReportedImportError {
        file: file.into(),
        line: Some(2),
        message: "ModuleNotFoundError: No module named 'nothing' in /srv/data".into(),
        traceback: String::new(),
        dag_ids: Vec::new(),
    }
}

fn checked(dags: &[(&str, &str)], broken: &[&str]) -> CheckedDags {
    CheckedDags {
        dags: dags.iter().map(|(id, file)| ((*id).to_owned(), (*file).to_owned())).collect(),
        errors: broken.iter().map(|file| error(file)).collect(),
        files: dags.iter().map(|(_, file)| *file).chain(broken.iter().copied()).map(str::to_owned).collect(),
    }
}

fn broken(before: &CheckedDags, after: CheckedDags) -> Vec<(String, Vec<String>)> {
    let errors = errors_with_broken_dags(before, after);
    errors.into_iter().map(|error| (error.file, error.dag_ids)).collect()
}

#[test]
fn a_dag_is_broken_if_its_file_cannot_be_imported_any_more() {
    let before = checked(&[("a", "a.py"), ("b", "b.py"), ("c", "b.py")], &["old.py"]);
    let of = |file: &str, ids: &[&str]| (file.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect());
    let same = checked(&[("a", "a.py"), ("b", "b.py"), ("c", "b.py")], &["old.py"]);
    assert_eq!(broken(&before, same), [of("old.py", &[])], "it was broken before");
    let after = checked(&[("a", "a.py")], &["b.py"]);
    assert_eq!(broken(&before, after), [of("b.py", &["b", "c"])]);
    assert_eq!(broken(&before, checked(&[("a", "a.py")], &[])), [], "removing DAGs breaks none");
    let elsewhere = checked(&[("a", "a.py"), ("b", "new.py"), ("c", "new.py")], &["b.py"]);
    assert_eq!(broken(&before, elsewhere), [of("b.py", &[])], "they are in another file now");
    let moved = checked(&[("b", "b.py"), ("c", "b.py")], &["moved.py"]);
    assert_eq!(broken(&before, moved), [of("moved.py", &["a"])]);
    let beside = checked(&[("a", "a.py"), ("b", "b.py"), ("c", "b.py")], &["new.py"]);
    assert_eq!(broken(&before, beside), [of("new.py", &[])], "nothing that was there is missing");
    assert_eq!(broken(&CheckedDags::default(), checked(&[], &["a.py"])), [of("a.py", &[])]);
}

#[test]
fn an_error_is_new_if_its_file_could_be_imported_before_or_was_not_there() {
    let files = |errors: &[ReportedImportError]| -> Vec<String> {
        errors.iter().map(|error| error.file.clone()).collect()
    };
    let before = checked(&[("a", "a.py"), ("b", "b.py"), ("half", "half.py")], &["old.py", "half.py"]);
    let found = compared(&before, checked(&[("a", "a.py")], &["b.py", "half.py", "new.py", "old.py"]));
    assert_eq!(files(&found.new), ["b.py", "half.py", "new.py"], "what is left of half.py is broken, too");
    assert_eq!(files(&found.known), ["old.py"]);
    let first = compared(&CheckedDags::default(), checked(&[("a", "a.py")], &["b.py"]));
    assert_eq!((files(&first.new), first.known), (vec!["b.py".to_owned()], Vec::new()));
}

#[test]
fn a_refusal_names_dags_files_and_lines_and_no_path_of_the_machine() {
    assert_eq!(refusal(&[]), None);
    let with = |file: &str, ids: &[&str]| ReportedImportError {
        dag_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..error(file)
    };
    let why = refusal(&[with("sub/a.py", &["hello"])]).unwrap();
    assert_eq!(
        *why.user_text(),
        "the deploy is strict, and one of its files cannot be imported: sub/a.py, line 2: ModuleNotFoundError: No module \
         named 'nothing' in … (breaks hello)"
    );
    let why = refusal(&[error("a.py"), with("b.py", &["hello", "bye"])]).unwrap();
    let told = why.user_text().as_str();
    assert!(
        told.starts_with("the deploy is strict, and 2 of its files cannot be imported: a.py, line 2: "),
        "{told}"
    );
    assert!(told.contains(" in …; b.py, line 2: ") && told.ends_with("(breaks hello, bye)"), "{told}");
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    let why = refusal(&[with("1", &many), with("2", &["x"]), with("3", &["y"]), with("4", &["z"])]).unwrap();
    let told = why.user_text().as_str();
    assert!(
        told.contains("and 4 of its files")
            && told.contains("(breaks a, b, c, d, e, 2 more); 2,")
            && told.ends_with("; and 1 more file"),
        "{told}"
    );
}

#[test]
fn what_a_parser_says_is_of_files_below_the_dags() {
    let answer = r#"{"dags": [{"dag_id": "hello", "fileloc": "/x/code/dags/versions/v1/dags/sub/a.py"}],
        "import_errors": [{"filename": "/x/code/dags/versions/v1/dags/b.py",
            "stack_trace": "File \"/x/code/dags/versions/v1/dags/b.py\", line 7\nE: no"}]}"#;
    let found = serde_json::from_str::<ParserAnswer>(answer).unwrap().checked(DagFolder("/code/dags/"));
    assert_eq!(found.dags["hello"], "sub/a.py");
    let described = &found.errors[0];
    let (file, message) = (described.file.as_str(), described.message.as_str());
    assert_eq!((file, described.line, message), ("b.py", Some(7), "E: no"));
}

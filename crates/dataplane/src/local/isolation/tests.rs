use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn told() -> Variables {
    let told = [("LD_PRELOAD", ""), ("PATH", "/usr/bin:/bin")];
    told.map(|(name, value)| (name.to_owned(), crate::Hidden::new(value.into()))).into()
}

fn run(isolation: &Isolation, script: &str) -> String {
    let output = isolation
        .command(&["/bin/sh".into(), "-c".into(), script.into()], &told())
        .current_dir("/")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_start_with_what_is_usual_and_with_their_arguments_as_they_are() {
    let arguments = ["/bin/echo", "a  b", "$HOME", "'"].map(OsString::from);
    let output = Isolation::None.command(&arguments, &told()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a  b $HOME '\n");
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    assert_eq!(run(&Isolation::None, "umask"), "0022\n");
}

#[test]
fn a_confined_program_is_started_by_the_launcher() {
    let isolation = Isolation::Landlock {
        launcher: "/bin/echo".into(),
        write: vec!["/own".into()],
        read: vec!["/shared".into(), "/more".into()],
        temporary: "/own/tmp".into(),
    };
    let said = run(&isolation, "true");
    let start = "confine --temporary /own/tmp --write /own --read /shared --read /more -- /bin/sh -c ";
    assert!(said.starts_with(start), "{said}");
    assert!(said.ends_with("/bin/sh -c true\n"), "{said}");
    let command = isolation.command(&["/bin/true".into()], &told());
    let names: Vec<&str> = command.get_envs().filter_map(|(name, _)| name.to_str()).collect();
    assert_eq!(names, ["PODIUM_SET_LD_PRELOAD", "PODIUM_SET_PATH"], "the launcher itself heeds none of them");
}

#[test]
fn another_user_reads_neither_a_closed_file_nor_the_list_of_environments() {
    if !rustix::process::geteuid().is_root() {
        // Only root can be somebody else.
        return;
    }
    let directory =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o711)).tempdir().unwrap();
    let root = directory.path();
    let layout = crate::local::layout::Layout::make(&root.join("local")).unwrap();
    let isolation = Isolation::User(layout.first_user() + 1);
    let place = layout.environment(podium_api::Id::from_parts(1, 2, 3));
    place.make(&isolation).unwrap();
    let other = layout.environment(podium_api::Id::from_parts(1, 2, 4));
    other.make(&Isolation::User(layout.first_user() + 2)).unwrap();
    let write = |path: &Path, mode| {
        fs::write(path, "text").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write(&root.join("secret-key"), 0o600);
    write(&place.code().join("dag.py"), 0o644);
    write(&other.code().join("dag.py"), 0o644);
    write(&place.state(), 0o600);
    let tried = |what: String| run(&isolation, &format!("{{ {what}; }} >/dev/null 2>&1 && echo done"));
    let can = |verb: &str, path: &Path| tried(format!("{verb} '{}'", path.display())) == "done\n";
    assert!(!can("cat", &root.join("secret-key")));
    assert!(!can("cat", &place.state()));
    assert!(
        !can("ls", root) && !can("ls", &root.join("local")) && !can("ls", &root.join("local/environments"))
    );
    assert!(can("cat", &place.code().join("dag.py")));
    assert!(!can("cat", &other.code().join("dag.py")), "that is another's");
    assert!(can("touch", &place.user_home().join("file")));
    assert!(!can("touch", &place.code().join("file")) && !can("touch", &place.logs().join("file")));
    assert_eq!(
        run(&isolation, "id -u; id -G"),
        format!("{0}\n{0}\n", layout.first_user() + 1),
        "no other groups"
    );
}

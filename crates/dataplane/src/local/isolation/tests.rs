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
    let output = Isolation::NONE.command(&arguments, &told()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a  b $HOME '\n");
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    assert_eq!(run(&Isolation::NONE, "umask"), "0022\n");
}

#[test]
fn every_program_of_an_environment_is_started_by_the_launcher() {
    let reach = Reach {
        write: vec!["/own".into()],
        read: vec!["/shared".into(), "/more".into()],
        temporary: "/own/tmp".into(),
    };
    let launcher =
        Launcher { program: "/bin/echo".into(), kept: vec!["/data".into()], ports: Some(20000..=20009) };
    let started = |mode: Mode| {
        let apart = Apart { mode, launcher: Some(launcher.clone()), proven: Proven::default() };
        apart.of_environment(7, &reach)
    };
    let rest = "-- /bin/sh -c umask";
    let start = "confine --temporary /own/tmp --write /own --read /shared --read /more --kept /data --ports 20000-20009 ";
    for (mode, more) in [
        (Mode::Landlock, ""),
        (Mode::Users { first: 100 }, "--user 107 --any-file "),
        (Mode::Trusted("it is".into()), "--any-file "),
    ] {
        let said = run(&started(mode), "true");
        assert!(said.starts_with(&format!("{start}{more}{rest}")), "{said}");
        assert!(said.ends_with("/bin/sh -c true\n"), "{said}");
    }
    let isolation = started(Mode::Landlock);
    let command = isolation.command(&["/bin/true".into()], &told());
    let names: Vec<&str> = command.get_envs().filter_map(|(name, _)| name.to_str()).collect();
    assert_eq!(names, ["PODIUM_SET_LD_PRELOAD", "PODIUM_SET_PATH"], "the launcher itself heeds none of them");
}

#[test]
fn what_is_kept_is_known_by_where_it_really_is() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir(root.join("data")).unwrap();
    std::os::unix::fs::symlink("data", root.join("link")).unwrap();
    assert_eq!(real(&root.join("link")), root.join("data"));
    assert_eq!(real(&root.join("link/objects/more")), root.join("data/objects/more"), "nothing is there yet");
}

#[test]
fn what_is_said_at_the_start_names_what_is_lacking() {
    let says = |mode: Mode, proven: Proven| Apart { mode, launcher: None, proven }.describe();
    let all = Proven { has_own_temporary: true, keeps_ports: true, readable: Vec::new(), trouble: None };
    let users = Mode::Users { first: 1 };
    let plain = "environments are kept apart: each runs under a user of its own";
    assert_eq!(says(users.clone(), all.clone()), plain);
    let less = Proven { keeps_ports: false, readable: vec!["/etc/tls.key".into()], ..all.clone() };
    let said = says(users, less);
    assert!(
        said.starts_with(plain) && said.contains("any free port") && said.contains("/etc/tls.key"),
        "{said}"
    );
    let shared = says(Mode::Landlock, Proven { has_own_temporary: false, ..all.clone() });
    assert!(shared.contains("they share /dev/shm"), "{shared}");
    let unconfined = Proven { trouble: Some("no such program".into()), ..all.clone() };
    assert!(says(Mode::Users { first: 1 }, unconfined).contains("cannot be confined: no such program"));
    assert!(says(Mode::Trusted("no".into()), all).contains("NOT kept apart"));
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
    let isolation = Isolation::of_user(layout.first_user() + 1);
    let place = layout.environment(podium_api::Id::from_parts(1, 2, 3));
    place.make(&isolation).unwrap();
    let other = layout.environment(podium_api::Id::from_parts(1, 2, 4));
    other.make(&Isolation::of_user(layout.first_user() + 2)).unwrap();
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

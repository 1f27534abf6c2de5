use podium_api::{DeploymentId, Id};
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn told() -> Variables {
    let told = [("LD_PRELOAD", ""), ("PATH", "/usr/bin:/bin")];
    told.map(|(name, value)| (name.to_owned(), crate::Secret::new(value.into()))).into()
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
fn programs_start_with_usual_limits_and_unchanged_arguments() {
    let arguments = ["/bin/echo", "a  b", "$HOME", "'"].map(OsString::from);
    let output = Isolation::NONE.command(&arguments, &told()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a  b $HOME '\n");
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    assert_eq!(run(&Isolation::NONE, "umask"), "0022\n");
}

#[test]
fn every_program_of_an_environment_is_started_by_the_launcher() {
    let access = FileAccess {
        write: vec!["/own".into()],
        read: vec!["/shared".into(), "/more".into()],
        temporary: "/own/tmp".into(),
    };
    let launcher =
        Launcher { program: "/bin/echo".into(), protected: vec!["/data".into()], ports: Some(20000..=20009) };
    let started = |mode: Mode| {
        let probed = ProbeResult { mounts: Mounts::Own, ..ProbeResult::default() };
        HostIsolation { mode, launcher: Some(launcher.clone()), probed }.of_environment(7, &access)
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
fn protected_paths_are_resolved_to_their_real_location() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir(root.join("data")).unwrap();
    std::os::unix::fs::symlink("data", root.join("link")).unwrap();
    assert_eq!(real(&root.join("link")), root.join("data"));
    assert_eq!(real(&root.join("link/objects/more")), root.join("data/objects/more"), "nothing is there yet");
}

#[test]
fn the_start_up_message_names_the_limitations() {
    let launcher = Some(Launcher { program: "/bin/echo".into(), protected: Vec::new(), ports: None });
    let says = |mode: Mode, probed: ProbeResult| {
        HostIsolation { mode, launcher: launcher.clone(), probed }.describe()
    };
    let all =
        ProbeResult { mounts: Mounts::Own, has_own_ipc: true, keeps_ports: true, ..ProbeResult::default() };
    let users = Mode::Users { first: 1 };
    let plain = "environments are isolated: each runs as its own user, with private mounts and IPC";
    assert_eq!(says(users.clone(), all.clone()), plain);
    let less = ProbeResult { keeps_ports: false, readable: vec!["/etc/tls.key".into()], ..all.clone() };
    let said = says(users, less);
    assert!(
        said.starts_with(plain) && said.contains("any free port") && said.contains("/etc/tls.key"),
        "{said}"
    );
    let mounts = Mounts::Shared("mount: Operation not permitted".into());
    let shared = says(Mode::Landlock, ProbeResult { mounts, ..all.clone() });
    assert!(shared.contains("they share /dev/shm") && !shared.contains("with private"), "{shared}");
    assert!(shared.contains("mount: Operation not permitted"), "{shared}");
    assert!(shared.contains("your user's sockets"), "{shared}");
    let below = says(Mode::Landlock, ProbeResult { shared: vec!["/tmp"], has_own_ipc: false, ..all.clone() });
    assert!(below.contains("they share /tmp, because the data directory is there"), "{below}");
    assert!(below.contains("confines each to its own files, with private mounts. However"), "{below}");
    let open = says(Mode::Landlock, ProbeResult { own_port: Some(40_000), ..all.clone() });
    assert!(open.contains("can take port 40000 while this server restarts"), "{open}");
    let unconfined = HostIsolation { mode: Mode::Users { first: 1 }, launcher: None, probed: all.clone() };
    assert!(unconfined.describe().contains("there is no launcher"));
    assert!(says(Mode::Trusted("no".into()), all).contains("NOT isolated"));
}

#[test]
fn a_test_that_could_not_run_does_not_count_as_lack_of_support() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    let program = |name: &str, script: &str| {
        let path = root.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    // As where no process can be started for a moment.
    let busy = program("busy", "echo 'sh: Cannot fork: Resource temporarily unavailable' >&2; exit 2");
    let found = |launcher: &Path, data: &Path| {
        let options =
            Options { directory: data.to_owned(), launcher: Some(launcher.to_owned()), ..Options::default() };
        HostIsolation::detect(Path::new("/bin/true"), &FileAccess::default(), &options, 1_999_990_010)
    };
    let local = root.join("data/local");
    let why = found(&busy, &local).unwrap_err();
    assert!(
        why.to_string().contains("could not be tested")
            && why.to_string().contains("temporarily unavailable"),
        "{why}"
    );
    let why = found(&root.join("missing"), &local).unwrap_err();
    assert!(why.to_string().contains("could not be tested"), "{why}");
    fs::create_dir_all(&local).unwrap();
    fs::write(local.join("proof"), "in the way").unwrap();
    let why = found(&busy, &local).unwrap_err();
    assert!(why.to_string().contains("local/proof"), "{why}");
}

#[test]
fn private_mounts_are_requested_only_if_they_work() {
    let apart = |mounts| HostIsolation {
        mode: Mode::Landlock,
        launcher: Some(Launcher { program: "/bin/echo".into(), protected: Vec::new(), ports: None }),
        probed: ProbeResult { mounts, ..ProbeResult::default() },
    };
    let access = FileAccess { temporary: "/own/tmp".into(), ..FileAccess::default() };
    let tells = |mounts| run(&apart(mounts).of_environment(1, &access), "true").contains("--temporary");
    assert!(tells(Mounts::Own) && !tells(Mounts::default()));
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
    let isolation = Isolation::of_user(layout.users.start + 1);
    let place = layout.environment(DeploymentId::from_raw(Id::from_parts(1, 2, 3)));
    place.make(&isolation).unwrap();
    let other = layout.environment(DeploymentId::from_raw(Id::from_parts(1, 2, 4)));
    other.make(&Isolation::of_user(layout.users.start + 2)).unwrap();
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
        format!("{0}\n{0}\n", layout.users.start + 1),
        "no other groups"
    );
}

//! `podium confine` restricts a program to its directories, even if it runs as root.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Three directories: one to write, one to read, and one without access.
struct Directories(TempDir);

impl Directories {
    fn new() -> Self {
        Self::in_directory(&std::env::temp_dir())
    }

    fn in_directory(directory: &Path) -> Self {
        let directories = Self(tempfile::tempdir_in(directory).expect("a temporary directory"));
        for name in ["write", "read", "outside"] {
            fs::create_dir(directories.at(name)).expect("a directory");
            fs::write(directories.at(name).join("file"), name).expect("a file");
        }
        directories
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// What a confined program says, if it ends well.
    fn confined(&self, program: &[&str], path: &Path) -> Result<String, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        command.env_clear().env("PODIUM_SET_PATH", "/usr/bin:/bin");
        command.arg("confine").arg("--write").arg(self.at("write")).arg("--read").arg(self.at("read"));
        command.arg("--").args(program).arg(path).current_dir("/");
        let output = command.output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

fn is_denied(answer: &Result<String, String>) -> bool {
    answer.as_ref().is_err_and(|said| said.contains("Permission denied"))
}

#[test]
fn a_confined_program_reaches_what_it_was_given_and_nothing_else() {
    let directories = Directories::new();
    let file = |directory: &str| directories.at(directory).join("file");
    let read = |directory: &str| directories.confined(&["cat"], &file(directory));
    if read("read").is_err_and(|said| said.contains("the kernel does not support Landlock")) {
        // Such a kernel runs nothing rather than something unconfined.
        return;
    }
    assert_eq!(read("read").as_deref(), Ok("read"));
    assert_eq!(read("write").as_deref(), Ok("write"));
    assert!(is_denied(&read("outside")), "{:?}", read("outside"));
    assert!(is_denied(&directories.confined(&["ls"], &directories.at("outside"))));
    let append = ["sh", "-c", "echo more >>\"$0\""];
    assert!(directories.confined(&append, &file("write")).is_ok());
    for closed in ["read", "outside"] {
        let answer = directories.confined(&append, &file(closed));
        assert!(is_denied(&answer), "{closed}: {answer:?}");
        assert_eq!(fs::read_to_string(file(closed)).expect("the file"), closed);
        assert!(is_denied(&directories.confined(&["rm"], &file(closed))));
    }
    let link = directories.at("write").join("link");
    std::os::unix::fs::symlink(file("outside"), &link).expect("a link");
    assert!(is_denied(&directories.confined(&["cat"], &link)), "no link leads out");
    let children = ["sh", "-c", "sh -c 'cat \"$0\"' \"$0\""];
    assert!(is_denied(&directories.confined(&children, &file("outside"))), "neither do children");
}

#[test]
fn variables_of_the_program_do_not_affect_the_launcher() {
    let directories = Directories::new();
    let library = directories.at("write").join("library.so");
    let source = directories.at("write").join("library.c");
    let code = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) {{\n  \
         FILE *file = fopen(\"{}\", \"w\");\n  if (file) fclose(file);\n}}\n",
        directories.at("outside").join("escaped").display()
    );
    fs::write(&source, code).expect("a file");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.expect("a C compiler, which the build needs too").success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
    command.env_clear().env("PODIUM_SET_LD_PRELOAD", &library).env("PODIUM_SET_GREETING", "hello");
    command.arg("confine").arg("--write").arg(directories.at("write")).arg("--");
    let output = command.args(["/bin/sh", "-c", "echo $GREETING; env"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if String::from_utf8_lossy(&output.stderr).contains("does not support Landlock") {
        return;
    }
    assert!(said.starts_with("hello\n") && said.contains("LD_PRELOAD="), "it reaches the program: {said}");
    assert!(!said.contains("PODIUM_SET_"), "{said}");
    assert!(
        !directories.at("outside").join("escaped").exists(),
        "it was loaded before the launcher was confined"
    );
}

#[test]
fn a_confined_program_has_its_own_tmp_if_the_kernel_allows_it() {
    // Who is given something below `/tmp` needs everybody's.
    let directories = Directories::in_directory(Path::new("/var/tmp"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
    command.env_clear().env("PODIUM_SET_PATH", "/usr/bin:/bin");
    command
        .arg("confine")
        .arg("--temporary")
        .arg(directories.at("write"))
        .arg("--write")
        .arg(directories.at("write"));
    let name = format!("own-{}", std::process::id());
    let script = format!("echo mine >/tmp/{name} && cat /tmp/{name}");
    let output = command.args(["--", "/bin/sh", "-c", &script]).output().expect("it starts");
    assert!(!Path::new("/tmp").join(&name).exists(), "it is not everybody's");
    if output.status.success() {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "mine\n");
        assert_eq!(fs::read_to_string(directories.at("write").join(&name)).expect("it is there"), "mine\n");
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("private mounts cannot be created") || said.contains("does not support Landlock"),
            "{said}"
        );
    }
}

#[test]
fn a_program_that_cannot_be_run_is_reported() {
    let directories = Directories::new();
    let said = directories.confined(&["/no/such/program"], Path::new("/")).expect_err("there is none");
    assert!(
        said.contains("/no/such/program cannot be run") || said.contains("does not support Landlock"),
        "{said}"
    );
}

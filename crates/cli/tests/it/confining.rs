//! `podium confine` keeps a program to its directories, also where it is root.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Three directories: one to write, one to read, and one that is nobody's business.
struct Ground(TempDir);

impl Ground {
    fn new() -> Self {
        let ground = Self(tempfile::tempdir().expect("a temporary directory"));
        for name in ["write", "read", "outside"] {
            fs::create_dir(ground.at(name)).expect("a directory");
            fs::write(ground.at(name).join("file"), name).expect("a file");
        }
        ground
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// What a confined program says, if it ends well.
    fn confined(&self, program: &[&str], path: &Path) -> Result<String, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
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
    let ground = Ground::new();
    let file = |directory: &str| ground.at(directory).join("file");
    let read = |directory: &str| ground.confined(&["cat"], &file(directory));
    if read("read").is_err_and(|said| said.contains("the kernel offers no Landlock")) {
        // Such a kernel runs nothing rather than something unconfined.
        return;
    }
    assert_eq!(read("read").as_deref(), Ok("read"));
    assert_eq!(read("write").as_deref(), Ok("write"));
    assert!(is_denied(&read("outside")), "{:?}", read("outside"));
    assert!(is_denied(&ground.confined(&["ls"], &ground.at("outside"))));
    let append = ["sh", "-c", "echo more >>\"$0\""];
    assert!(ground.confined(&append, &file("write")).is_ok());
    for closed in ["read", "outside"] {
        let answer = ground.confined(&append, &file(closed));
        assert!(is_denied(&answer), "{closed}: {answer:?}");
        assert_eq!(fs::read_to_string(file(closed)).expect("the file"), closed);
        assert!(is_denied(&ground.confined(&["rm"], &file(closed))));
    }
    let link = ground.at("write").join("link");
    std::os::unix::fs::symlink(file("outside"), &link).expect("a link");
    assert!(is_denied(&ground.confined(&["cat"], &link)), "no link leads out");
    let children = ["sh", "-c", "sh -c 'cat \"$0\"' \"$0\""];
    assert!(is_denied(&ground.confined(&children, &file("outside"))), "neither do children");
}

#[test]
fn what_cannot_be_run_is_said() {
    let ground = Ground::new();
    let said = ground.confined(&["/no/such/program"], Path::new("/")).expect_err("there is none");
    assert!(said.contains("/no/such/program cannot be run") || said.contains("no Landlock"), "{said}");
}

//! `cargo xtask mutate`: ten rules broken on purpose, one at a time; the tests must notice each of them.
//!
//! Each mutation is made in a copy of the workspace. It must compile, and the named tests must fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::{Outcome, While};
use crate::workspace::{cargo, root, scratch};

/// A rule broken on purpose.
struct Mutation {
    /// What goes wrong.
    what: &'static str,
    /// The file, from the root.
    file: &'static str,
    /// The text that stands there once.
    from: &'static str,
    /// What it becomes.
    to: &'static str,
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "hibernation follows the opposite of the latest event",
        file: "crates/domain/src/deployments/hibernation.rs",
        from: "is_some_and(|(_, wakes)| !wakes)",
        to: "is_some_and(|(_, wakes)| wakes)",
    },
    Mutation {
        what: "a secret variable becomes plain without a new value",
        file: "crates/domain/src/deployments/variables.rs",
        from: "(false, None, Some(known)) if known.secret.is_some() =>",
        to: "(false, None, Some(known)) if known.secret.is_some() && known.key.is_empty() =>",
    },
    Mutation {
        what: "a pod may be larger than the quota",
        file: "crates/domain/src/deployments/resources.rs",
        from: "&& pod > quota",
        to: "&& pod < quota",
    },
    Mutation {
        what: "the default queue may be renamed",
        file: "crates/domain/src/deployments/queues.rs",
        from: "known.name == DEFAULT && queue.name != DEFAULT",
        to: "known.name == DEFAULT && queue.name.is_empty()",
    },
    Mutation {
        what: "the only cluster outranks the workspace's default region",
        file: "crates/domain/src/deployments/place.rs",
        from: "if let Some(id) = workspace.default_cluster_id {",
        to: "if let Some(id) = around.only_cluster.or(workspace.default_cluster_id) {",
    },
    Mutation {
        what: "a workspace accessor reaches deployments",
        file: "crates/domain/src/grants.rs",
        from: "set.of_scope(RoleScope::Deployment).contains(permission)",
        to: "!set.is_empty()",
    },
    Mutation {
        what: "an environment that is not there is forgotten",
        file: "crates/domain/src/deployments/plan.rs",
        from: "Observation::Absent => Step::Apply(Cause::Create),",
        to: "Observation::Absent => Step::Forget,",
    },
    Mutation {
        what: "a cluster whose creation failed can be changed",
        file: "crates/domain/src/clusters/states.rs",
        from: "(Event::Update, Created | UpdateFailed) => Ok(Some(Updating)),",
        to: "(Event::Update, Created | UpdateFailed | ClusterStatus::CreateFailed) => Ok(Some(Updating)),",
    },
    Mutation {
        what: "a person deploys where only API tokens may",
        file: "crates/domain/src/deploys/create.rs",
        from: "if asker.is_cicd_enforced && !asker.is_api_token {",
        to: "if asker.is_cicd_enforced && asker.is_api_token {",
    },
    Mutation {
        what: "an object of the workspace beats one of the deployment",
        file: "crates/domain/src/environment_objects/resolve.rs",
        from: "by_variable || (!is_own(candidate) && own.contains(&place(candidate)))",
        to: "by_variable || (is_own(candidate) && own.contains(&place(candidate)))",
    },
];

/// Breaks each rule in turn, and reports those that no test noticed.
pub(crate) fn run() -> Outcome {
    let scratch = scratch()?;
    let copy = scratch.join("mutated");
    let target = scratch.join("mutated-target");
    copy_sources(&root(), &copy)?;
    if !tests_pass(&copy, &target)? {
        return Err("the tests fail before anything is broken".into());
    }
    let mut unnoticed = Vec::new();
    for mutation in MUTATIONS {
        let path = copy.join(mutation.file);
        let text = fs::read_to_string(&path).doing(mutation.file)?;
        if text.matches(mutation.from).count() != 1 {
            return Err(format!("{}: `{}` must stand there once", mutation.file, mutation.from));
        }
        fs::write(&path, text.replacen(mutation.from, mutation.to, 1)).doing(mutation.file)?;
        let noticed = !tests_pass(&copy, &target)?;
        fs::write(&path, text).doing(mutation.file)?;
        println!("{}: {}", if noticed { "noticed" } else { "NOT NOTICED" }, mutation.what);
        if !noticed {
            unnoticed.push(mutation.what);
        }
    }
    if unnoticed.is_empty() {
        println!("all {} mutations were noticed", MUTATIONS.len());
        return Ok(());
    }
    Err(format!("no test noticed: {}", unnoticed.join("; ")))
}

/// Whether the rules' own tests pass; they must compile either way.
fn tests_pass(copy: &Path, target: &Path) -> Outcome<bool> {
    let tests = |more: &[&str]| -> Command {
        let mut command = cargo(&["test", "--quiet", "--package", "podium-domain", "--lib"]);
        command.args(more).current_dir(copy).env("CARGO_TARGET_DIR", target);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let compiled = tests(&["--no-run"]).status().doing("cargo test")?;
    if !compiled.success() {
        return Err("a mutation does not compile".into());
    }
    Ok(tests(&[]).status().doing("cargo test")?.success())
}

/// Copies what git knows of.
fn copy_sources(from: &Path, to: &Path) -> Outcome {
    let listed = Command::new("git").arg("ls-files").current_dir(from).output().doing("git ls-files")?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let (source, copy): (PathBuf, PathBuf) = (from.join(name), to.join(name));
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent).doing(name)?;
        }
        let bytes = fs::read(&source).doing(name)?;
        if fs::read(&copy).ok().as_deref() != Some(bytes.as_slice()) {
            fs::write(&copy, bytes).doing(name)?;
        }
    }
    Ok(())
}

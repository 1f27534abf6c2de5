//! `podium init`: a small working project.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Exit, Failed, Outcome};
use crate::client::project::FILE;

/// Write a small working project to a folder; existing files are never overwritten.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium init hello
  podium init . --deployment nightly")]
pub(crate) struct Init {
    /// Folder of the project; it is created if needed.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Name of the deployment; the default is that of the folder.
    #[arg(long)]
    deployment: Option<String>,
    /// Workspace of the deployment; not needed if there is only one.
    #[arg(long)]
    workspace: Option<String>,
}

const DAG: &str = r#""""A first DAG: one task that says hello."""

try:
    from airflow.sdk import dag, task
except ImportError:  # Airflow 2
    from airflow.decorators import dag, task


@dag(schedule=None, catchup=False, tags=["example"])
def hello():
    @task
    def greet():
        print("Hello from your first DAG")

    greet()


hello()
"#;

const IGNORED: &str = "\
# Files that `podium deploy` leaves out, in addition to those in .gitignore, with the same syntax.
tests/
*.md
";

/// What else can be in the file.
const SETTINGS: &str = "\
# What the deployment needs; remove the # from the settings that you want to use.
# runtime: 3.3.2
# queues: [{name: default, platformMachine: A5, minWorkerCount: 0, maxWorkerCount: 3, workerConcurrency: 5}]
# variables: [API_KEY]  # only names: the values come from the environment or from .env
# links: [warehouse]  # environment objects of the workspace
";

const REQUIREMENTS: &str = "# Python packages that the DAGs need, one on each line.\n";

impl Init {
    pub(crate) fn run(self) -> Outcome {
        let name = match &self.deployment {
            Some(name) => name.clone(),
            None => folder_name(&self.folder)?,
        };
        let mut project = String::from("# Where `podium deploy` sends this project.\n");
        if let Some(workspace) = &self.workspace {
            project.push_str(&format!("workspace: {}\n", quoted(workspace)));
        }
        project.push_str(&format!("deployment: {}\n", quoted(&name)));
        project.push_str(SETTINGS);
        let files = [
            (FILE, project.as_str()),
            ("dags/hello.py", DAG),
            (".podiumignore", IGNORED),
            ("requirements.txt", REQUIREMENTS),
        ];
        let taken: Vec<String> = files
            .iter()
            .map(|(path, _)| self.folder.join(path))
            .filter(|path| path.symlink_metadata().is_ok())
            .map(|path| path.display().to_string())
            .collect();
        if !taken.is_empty() {
            return Err(Failed::new(Exit::Conflict, "these files exist already, so nothing was written")
                .details(taken));
        }
        for (path, text) in files {
            write(&self.folder.join(path), text)?;
        }
        let folder = typed(&self.folder.display().to_string());
        eprintln!("Wrote a project to {folder}\nNext, run it on this machine while you write it:");
        eprintln!("  podium dev {folder}");
        eprintln!("Or send it to a server:");
        eprintln!("  podium deploy {folder} --create");
        Ok(())
    }
}

/// A name as it is typed in a shell.
fn typed(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// Writes a file that does not exist.
fn write(path: &Path, text: &str) -> Outcome {
    let written = (|| {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::File::create_new(path)?.write_all(text.as_bytes())
    })();
    written.map_err(|error: std::io::Error| {
        Failed::because(format!("{} cannot be written: {error}", path.display()))
    })
}

fn folder_name(folder: &Path) -> Outcome<String> {
    let whole = std::path::absolute(folder)?;
    let name = whole.components().next_back().and_then(|last| last.as_os_str().to_str());
    match name {
        Some(name) if name != "/" => Ok(name.to_owned()),
        _ => Err(Failed::usage("name the deployment with --deployment")),
    }
}

/// A text as YAML: JSON strings are YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::project::Project;

    #[test]
    fn what_is_commented_out_can_be_said() {
        let folder = tempfile::tempdir().unwrap();
        let said = SETTINGS.lines().skip(1).map(|line| line.strip_prefix("# ").unwrap());
        fs::write(folder.path().join(FILE), said.collect::<Vec<_>>().join("\n")).unwrap();
        assert_ne!(Project::read(folder.path()).unwrap(), Project::default());
    }
}

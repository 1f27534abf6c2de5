//! The tools that come from PyPI, in a virtual environment below the target directory.
//!
//! The environment is made once and kept while `python/requirements.txt` stays the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{Outcome, While};
use crate::system;
use crate::workspace::{must, works};

const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// The directory of the tools' programs; installs them if they are not there.
pub(crate) fn tools(scratch: &Path) -> Outcome<PathBuf> {
    let environment = scratch.join("python");
    let programs = environment.join("bin");
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
        return Ok(programs);
    }
    if !make(&environment) {
        system::install("Python 3 with venv", &["python3", "python3-venv"])?;
        if !make(&environment) {
            return Err("`python3 -m venv` still fails after installing python3-venv".into());
        }
    }
    let wanted = environment.join("requirements.txt");
    fs::write(&wanted, REQUIREMENTS).doing("writing the requirements")?;
    let mut pip = Command::new(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "-r"])
        .arg(&wanted);
    must(&mut pip)
        .map_err(|failure| format!("the Python tools could not be installed from PyPI: {failure}"))?;
    fs::rename(&wanted, &installed).doing("keeping the requirements")?;
    Ok(programs)
}

fn make(environment: &Path) -> bool {
    works(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment))
}

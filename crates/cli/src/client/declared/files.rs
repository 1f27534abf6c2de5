//! Files of declarations: YAML or JSON, one or a folder of them.

use std::path::{Path, PathBuf};

use clap::Args;
use podium_api::Id;
use podium_api::declarations::Declarations;
use serde_json::Value;

use super::calls::stand_in;
use super::keys::{Fields, Key, Kind};
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{text_of, yaml_problem};

const MOST_FILES: usize = 1_000;

/// What to apply.
#[derive(Args)]
pub(crate) struct Source {
    /// File or folder of declarations (YAML or JSON); - is standard input. Can be repeated.
    #[arg(long, short, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Delete resources that the set of the files owns but the files no longer declare.
    #[arg(long)]
    pub(super) prune: bool,
    /// Send secrets again that already exist; by default existing secrets are kept.
    #[arg(long)]
    pub(super) update_secrets: bool,
    /// Apply several plans, one after the other, if one is not enough.
    #[arg(long)]
    pub(super) in_parts: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) fields: Fields,
    /// Where, such as `prod.yaml: deployments[2]`.
    pub(super) at: String,
    /// Stands in for its id, if it is to be made.
    pub(super) stand_in: Id,
}

#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) set: Option<String>,
    pub(super) entries: Vec<Entry>,
}

impl Declared {
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.key.kind == kind)
    }

    pub(super) fn entry(&self, key: &Key) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == *key)
    }

    pub(super) fn read(paths: &[PathBuf]) -> Outcome<Self> {
        let mut declared = Self::default();
        for path in paths {
            if path.is_dir() {
                for file in files_of(path)? {
                    declared.add(&file)?;
                }
            } else {
                declared.add(path)?;
            }
        }
        Ok(declared)
    }

    fn add(&mut self, path: &Path) -> Outcome {
        let (name, text) = (path.display().to_string(), text_of(path)?);
        self.add_text(&name, &text)
    }

    fn add_text(&mut self, name: &str, text: &str) -> Outcome {
        let mut file: Declarations = serde_saphyr::from_str(text).map_err(|error| {
            Failed::usage(yaml_problem(&name, &error))
                .hint("Fields of declaration files: docs/guide/declarative.md")
        })?;
        if let Some(set) = file.set.take() {
            match &self.set {
                Some(known) if *known != set => {
                    return Err(Failed::usage(format!(
                        "{name}: set: is {set:?} here and {known:?} in another file: one command applies one set"
                    )));
                }
                _ => self.set = Some(set),
            }
        }
        let Ok(Value::Object(mut sections)) = serde_json::to_value(&file) else {
            return Err(Failed::because(format!("{name} cannot be read as declarations")));
        };
        for kind in Kind::ALL {
            let Some(Value::Array(items)) = sections.remove(kind.section()) else { continue };
            for (index, item) in items.into_iter().enumerate() {
                let Value::Object(fields) = item else { continue };
                let at = format!("{name}: {}[{index}]", kind.section());
                let key = Key::of(kind, &fields);
                if key.has_reference() {
                    return Err(Failed::usage(format!(
                        "{at}: fields that identify a resource cannot be references: write them out"
                    )));
                }
                if let Some(other) = self.entry(&key) {
                    return Err(Failed::usage(format!("{at} is already declared at {}", other.at)));
                }
                let stand_in = stand_in(self.entries.len());
                self.entries.push(Entry { key, fields, at, stand_in });
            }
        }
        Ok(())
    }
}

fn files_of(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let is_read =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Failed::usage(format!("{} cannot be read: {error}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(is_read)
        .take(MOST_FILES + 1)
        .collect();
    if files.is_empty() {
        return Err(Failed::usage(format!("{} has no .yaml, .yml or .json file", folder.display())));
    }
    if files.len() > MOST_FILES {
        return Err(Failed::usage(format!("{} has more than {MOST_FILES} files", folder.display())));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Declared, String> {
        let mut declared = Declared::default();
        declared.add_text("file.yaml", text).map(|()| declared).map_err(|failed| format!("{failed:?}"))
    }

    #[test]
    fn yaml_and_json_are_read() {
        let yaml =
            read("set: prod\nworkspaces:\n  - name: Reports\n    cicdEnforcedDefault: true\n").unwrap();
        let json =
            read(r#"{ "set": "prod", "workspaces": [{ "name": "Reports", "cicdEnforcedDefault": true }] }"#)
                .unwrap();
        assert_eq!(yaml.set.as_deref(), Some("prod"));
        assert_eq!(yaml.entries[0].fields, json.entries[0].fields);
        assert_eq!(yaml.entries[0].at, "file.yaml: workspaces[0]");
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (text, place) in [
            ("workspaces:\n  - name: a\n    descripton: b\n", "file.yaml:3:5: "),
            ("workspaces:\n  - description: b\n", "file.yaml:2:5: "),
            ("deployments:\n  - name: a\n    workspace: w\n    schedulerSize: HUGE\n", "file.yaml:4:20: "),
            ("workspaces: [\n", "file.yaml:"),
            ("workspaces:\n  - name: a\n  - name: A\n", "is already declared at file.yaml: workspaces[0]"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(place), "{text}: {said}");
        }
    }
}

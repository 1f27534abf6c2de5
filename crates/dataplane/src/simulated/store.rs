//! The store of the simulated plane: in memory, or one small file for each object.
//!
//! A file is written under a temporary name and renamed, so that a killed process leaves the old one or the new one. It
//! need not survive a power failure.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use podium_api::TypedId;
use podium_domain::{Reason, UserText};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;
use crate::blocking::{blocking, blocking_exclusive};

const HALF_WRITTEN: &str = "tmp";

pub(super) enum Store<I, T> {
    Memory(Mutex<BTreeMap<I, T>>),
    Files(PathBuf),
}

impl<I: TypedId, T: Clone + Serialize + DeserializeOwned + Send + 'static> Store<I, T> {
    pub(super) fn memory() -> Self {
        Self::Memory(Mutex::default())
    }

    /// A store in a directory, which is created if needed. Incomplete files of a killed process are removed.
    pub(super) fn files(directory: PathBuf) -> std::io::Result<Self> {
        fs::create_dir_all(&directory)?;
        for file in fs::read_dir(&directory)?.flatten() {
            if file.path().extension().is_some_and(|extension| extension == HALF_WRITTEN) {
                let _ = fs::remove_file(file.path());
            }
        }
        Ok(Self::Files(directory))
    }

    pub(super) async fn get(&self, id: I) -> Result<Option<T>, Fault> {
        let path = match self {
            Self::Memory(things) => return Ok(lock(things).get(&id).cloned()),
            Self::Files(directory) => directory.join(file(id)),
        };
        match blocking(move || fs::read(path)).await {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| broken(id, &error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(broken(id, &error)),
        }
    }

    pub(super) async fn put(&self, id: I, thing: &T) -> Result<(), Fault> {
        match self {
            Self::Memory(things) => {
                lock(things).insert(id, thing.clone());
                Ok(())
            }
            Self::Files(directory) => {
                let bytes = serde_json::to_vec(thing).map_err(|error| broken(id, &error))?;
                let beside = directory.join(format!("{id}.{HALF_WRITTEN}"));
                let path = directory.join(file(id));
                let put = blocking_exclusive(&beside.clone(), move || {
                    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path))
                });
                put.await.map_err(|error| broken(id, &error))
            }
        }
    }

    pub(super) async fn remove(&self, id: I) -> Result<(), Fault> {
        let path = match self {
            Self::Memory(things) => {
                lock(things).remove(&id);
                return Ok(());
            }
            Self::Files(directory) => directory.join(file(id)),
        };
        match blocking(move || fs::remove_file(path)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(broken(id, &error)),
            _ => Ok(()),
        }
    }

    pub(super) fn ids(&self) -> Vec<I> {
        match self {
            Self::Memory(things) => lock(things).keys().copied().collect(),
            Self::Files(directory) => {
                let files = fs::read_dir(directory).into_iter().flatten().flatten();
                let id = |file: fs::DirEntry| file.file_name().to_str()?.strip_suffix(".json")?.parse().ok();
                let mut ids: Vec<I> = files.filter_map(id).collect();
                ids.sort_unstable();
                ids
            }
        }
    }
}

fn file(id: impl TypedId) -> String {
    format!("{id}.json")
}

fn lock<I, T>(things: &Mutex<BTreeMap<I, T>>) -> std::sync::MutexGuard<'_, BTreeMap<I, T>> {
    things.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(id: impl TypedId, error: &dyn std::fmt::Display) -> Fault {
    let told = UserText::filled("the stored state of {} cannot be read", &[&id.raw()]);
    Reason::new(told, error).into()
}

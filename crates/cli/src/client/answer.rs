//! What a server has answered: as it was sent, to show it, and as a type, to act on it.
//!
//! It is decoded only where a command acts on it, and no further than that needs: a newer server may say words that this
//! version does not know, and what is only shown is shown as it came.

use std::fmt;
use std::marker::PhantomData;

use podium_api::{Endpoint, Reply, Shown};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ending::{Failed, Outcome};

pub(crate) type BodyOf<E> = <<E as Endpoint>::Reply as Reply>::Body;

#[derive(Clone, Debug)]
pub(crate) struct Answer<T> {
    pub(crate) raw: Value,
    kind: PhantomData<fn() -> T>,
}

impl<T> From<Value> for Answer<T> {
    fn from(raw: Value) -> Self {
        Self { raw, kind: PhantomData }
    }
}

impl<T: DeserializeOwned> Answer<T> {
    pub(crate) fn body(&self) -> Outcome<T> {
        read(&self.raw)
    }
}

impl<T> Answer<T> {
    /// What a command needs of it, whatever else a newer server says.
    pub(crate) fn part<P: DeserializeOwned>(&self) -> Outcome<P> {
        read(&self.raw)
    }
}

/// Reads a part of what a server has answered.
pub(crate) fn read<P: DeserializeOwned>(raw: &Value) -> Outcome<P> {
    P::deserialize(raw).map_err(|error| not_expected(&error))
}

pub(crate) fn value_of<T: DeserializeOwned>(shown: Shown<T>) -> Outcome<T> {
    shown.into_value().map_err(|error| not_expected(&error))
}

fn not_expected(error: &serde_json::Error) -> Failed {
    Failed::because(format!("the server's answer is not as expected: {error}"))
}

/// A word of the contract; a newer server may say others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Word<E> {
    Known(E),
    Novel(String),
}

impl<E: Copy + PartialEq> Word<E> {
    pub(crate) fn is(&self, word: E) -> bool {
        matches!(self, Self::Known(known) if *known == word)
    }

    pub(crate) fn known(&self) -> Option<&E> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }
}

impl<E> Default for Word<E> {
    fn default() -> Self {
        Self::Novel(String::new())
    }
}

impl<E: fmt::Display> fmt::Display for Word<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(word) => word.fmt(f),
            Self::Novel(word) => word.fmt(f),
        }
    }
}

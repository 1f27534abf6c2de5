//! The values of an object or of a link's overrides: by name, with members of maps as `map.member`.

use std::collections::BTreeMap;

use podium_api::enums::EnvironmentObjectType;
use serde_json::{Map, Value};

use super::fields::{Nature, fields};

/// A secret as it is at hand: opened, or hidden.
pub trait Secrecy: Clone {
    fn shown(&self) -> Value;
}

/// A secret that is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden;

impl Secrecy for Hidden {
    fn shown(&self) -> Value {
        Value::String(String::new())
    }
}

impl Secrecy for Value {
    fn shown(&self) -> Value {
        self.clone()
    }
}

/// Values by name. With hidden secrets they can be shown and not stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<S = Value> {
    /// Those that anybody who sees the object may read.
    pub plain: BTreeMap<String, Value>,
    /// The others.
    pub secret: BTreeMap<String, S>,
}

impl<S> Default for Values<S> {
    fn default() -> Self {
        Self { plain: BTreeMap::new(), secret: BTreeMap::new() }
    }
}

impl<S: Secrecy> Values<S> {
    /// Names of everything that has a value, in the order of the type's fields.
    pub fn set_fields(&self, object_type: EnvironmentObjectType) -> Vec<String> {
        let mut names: Vec<&String> = self.plain.keys().chain(self.secret.keys()).collect();
        names.sort();
        let of = |field: &str, name: &str| name.split('.').next() == Some(field);
        let in_order = fields(object_type).iter().flat_map(|field| {
            names.iter().filter(|name| of(field.name, name)).map(|name| (*name).clone()).collect::<Vec<_>>()
        });
        in_order.collect()
    }

    /// Whether there is a value that is not empty.
    pub fn has(&self, name: &str) -> bool {
        self.plain.get(name).is_some_and(|value| value != "") || self.secret.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.secret.is_empty()
    }

    /// These values with others over them.
    pub fn overlaid(&self, over: &Self) -> Self {
        let mut merged = self.clone();
        for (name, value) in &over.plain {
            merged.secret.remove(name);
            merged.plain.insert(name.clone(), value.clone());
        }
        for (name, value) in &over.secret {
            merged.plain.remove(name);
            merged.secret.insert(name.clone(), value.clone());
        }
        merged
    }

    /// The same with every secret hidden.
    pub fn hidden(&self) -> Values<Hidden> {
        let secret = self.secret.keys().map(|name| (name.clone(), Hidden)).collect();
        Values { plain: self.plain.clone(), secret }
    }

    /// As the body of an object on the wire; an empty map is left out.
    pub fn nested(&self, object_type: EnvironmentObjectType) -> Map<String, Value> {
        let shown =
            |name: &str| self.secret.get(name).map(Secrecy::shown).or_else(|| self.plain.get(name).cloned());
        let mut body = Map::new();
        for name in self.set_fields(object_type) {
            let Some(value) = shown(&name) else { continue };
            match name.split_once('.') {
                None => {
                    body.insert(name, value);
                }
                Some((map, member)) => {
                    let members = body.entry(map).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(members) = members {
                        members.insert(member.to_owned(), value);
                    }
                }
            }
        }
        body
    }
}

/// What a request gives, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given {
    pub(crate) values: BTreeMap<String, Value>,
    /// The maps that are given, with members or without.
    maps: Vec<&'static str>,
}

impl Given {
    /// Takes the body of an object of a type apart.
    pub(crate) fn from_body(object_type: EnvironmentObjectType, body: &Map<String, Value>) -> Self {
        let mut given = Self::default();
        for field in fields(object_type) {
            match body.get(field.name) {
                Some(Value::Object(members)) if field.is_map => {
                    given.maps.push(field.name);
                    for (member, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                        given.values.insert(format!("{}.{member}", field.name), value.clone());
                    }
                }
                Some(value) if !value.is_null() => {
                    given.values.insert(field.name.to_owned(), value.clone());
                }
                _ => {}
            }
        }
        given
    }
}

impl Values {
    /// Sets the given values; an empty text for a secret keeps it.
    pub(crate) fn write(&mut self, given: &Given, nature: Nature) {
        for (name, value) in &given.values {
            let is_blank = value == "";
            if nature.hides(name) || (is_blank && self.secret.contains_key(name)) {
                if !is_blank {
                    self.plain.remove(name);
                    self.secret.insert(name.clone(), value.clone());
                }
            } else {
                self.secret.remove(name);
                self.plain.insert(name.clone(), value.clone());
            }
        }
    }

    /// Drops members of the maps that are given which are not among what is given.
    pub(crate) fn drop_missing_members(&mut self, given: &Given) {
        let stays = |name: &str| {
            let map = name.split_once('.').map(|(map, _)| map);
            map.is_none_or(|map| !given.maps.contains(&map)) || given.values.contains_key(name)
        };
        self.plain.retain(|name, _| stays(name));
        self.secret.retain(|name, _| stays(name));
    }

    /// Drops a value, or all members of a map.
    pub(crate) fn unset(&mut self, name: &str) {
        let stays = |kept: &String| !covers(name, kept);
        self.plain.retain(|kept, _| stays(kept));
        self.secret.retain(|kept, _| stays(kept));
    }

    /// Hides what has become a secret. What has been one stays one until it is written again.
    pub(crate) fn hide(&mut self, nature: Nature) {
        let names: Vec<String> = self.plain.keys().filter(|name| nature.hides(name)).cloned().collect();
        for name in names {
            if let Some(value) = self.plain.remove(&name) {
                self.secret.insert(name, value);
            }
        }
    }
}

/// Whether a name is this one, or that of a member of this map.
pub(crate) fn covers(name: &str, other: &str) -> bool {
    other == name || other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

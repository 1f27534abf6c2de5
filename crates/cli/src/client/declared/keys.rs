//! What a declared resource is known by: its kind and its names.

use podium_api::enums::DeclaredKind;
use serde_json::{Map, Value};

use crate::client::session::text;

/// The fields of a resource, as files declare them.
pub(super) type Fields = Map<String, Value>;

/// A kind of resources that files declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Workspace,
    Cluster,
    Role,
    User,
    Team,
    Deployment,
    EnvironmentObject,
    Token,
}

impl Kind {
    /// Every kind, in the order of a file.
    pub(super) const ALL: [Self; 8] = [
        Self::Workspace,
        Self::Cluster,
        Self::Role,
        Self::User,
        Self::Team,
        Self::Deployment,
        Self::EnvironmentObject,
        Self::Token,
    ];

    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::Workspace => "workspaces",
            Self::Cluster => "clusters",
            Self::Role => "roles",
            Self::User => "users",
            Self::Team => "teams",
            Self::Deployment => "deployments",
            Self::EnvironmentObject => "environmentObjects",
            Self::Token => "tokens",
        }
    }

    /// One of them, in words.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::EnvironmentObject => "environment object",
            other => other.section().trim_end_matches('s'),
        }
    }

    /// What a set calls it; a set owns no users.
    pub(super) fn owned(self) -> Option<DeclaredKind> {
        DeclaredKind::ALL.iter().copied().find(|kind| Self::of_member(*kind) == self)
    }

    /// The kind that a set calls so.
    pub(super) const fn of_member(kind: DeclaredKind) -> Self {
        match kind {
            DeclaredKind::Workspace => Self::Workspace,
            DeclaredKind::Cluster => Self::Cluster,
            DeclaredKind::Role => Self::Role,
            DeclaredKind::Team => Self::Team,
            DeclaredKind::Deployment => Self::Deployment,
            DeclaredKind::EnvironmentObject => Self::EnvironmentObject,
            DeclaredKind::Token => Self::Token,
        }
    }
}

/// What a resource is known by, whatever the case of its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: Kind,
    names: Vec<String>,
}

impl Key {
    /// The key of a resource in the form of the files.
    pub(super) fn of(kind: Kind, fields: &Fields) -> Self {
        let names = names(kind, fields).into_iter().map(str::to_lowercase).collect();
        Self { kind, names }
    }

    /// Whether one of its names refers to the environment, so that it is not known before that is read.
    pub(super) fn has_reference(&self) -> bool {
        self.names.iter().any(|name| name.contains("${"))
    }

    /// The key of something with a name of its own.
    pub(super) fn named(kind: Kind, name: &str) -> Self {
        Self { kind, names: vec![name.to_lowercase()] }
    }

    pub(super) fn deployment(workspace: &str, name: &str) -> Self {
        Self { kind: Kind::Deployment, names: vec![workspace.to_lowercase(), name.to_lowercase()] }
    }
}

/// The fields by which a resource of a kind is known.
pub(super) const fn identity(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::User => &["email"],
        Kind::Deployment => &["workspace", "name"],
        Kind::EnvironmentObject => &["workspace", "deployment", "objectType", "objectKey"],
        Kind::Token => &["workspace", "deployment", "name"],
        Kind::Workspace | Kind::Cluster | Kind::Role | Kind::Team => &["name"],
    }
}

fn names(kind: Kind, fields: &Fields) -> Vec<&str> {
    identity(kind).iter().map(|field| fields.get(*field).map_or("", text)).collect()
}

/// What people call a resource, such as `Reports/nightly`.
pub(super) fn label(kind: Kind, fields: &Fields) -> String {
    let shown = names(kind, fields).into_iter().filter(|name| !name.is_empty());
    shown.collect::<Vec<_>>().join("/")
}

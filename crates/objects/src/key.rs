//! Keys of objects: words between slashes, which can never name anything outside the store.

use std::fmt;

use podium_api::{DeployId, DeploymentId, UploadId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

const LONGEST: usize = 512;
const LONGEST_WORD: usize = 200;

impl Key {
    /// Parses a stored key; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let is_word = |word: &str| {
            (1..=LONGEST_WORD).contains(&word.len())
                && !word.starts_with('.')
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        (text.len() <= LONGEST && text.split('/').all(is_word)).then(|| Self(text.to_owned()))
    }

    pub fn of_deployment(deployment_id: DeploymentId) -> Self {
        Self(format!("deployments/{deployment_id}"))
    }

    pub fn of_deploy(deployment_id: DeploymentId, deploy_id: DeployId) -> Self {
        Self(format!("deployments/{deployment_id}/{deploy_id}"))
    }

    pub fn of_upload(deployment_id: DeploymentId, deploy_id: DeployId, version: UploadId) -> Self {
        Self(format!("deployments/{deployment_id}/{deploy_id}/{version}"))
    }

    pub(crate) fn of_staging(deployment_id: DeploymentId, deploy_id: DeployId) -> Self {
        Self::of_deploy(deployment_id, deploy_id).below("staged")
    }

    /// A longer key; the word must be valid.
    pub(crate) fn below(&self, word: &str) -> Self {
        Self(format!("{}/{word}", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, TypedId};

    use super::*;

    #[test]
    fn keys_stay_inside_the_store() {
        fn id<I: TypedId>() -> I {
            I::from_raw(Id::from_parts(1, 2, 3))
        }
        for key in [
            Key::of_deployment(id()),
            Key::of_deploy(id(), id()),
            Key::of_upload(id(), id(), id()),
            Key::of_staging(id(), id()),
        ] {
            assert_eq!(Key::parse(key.as_str()), Some(key));
        }
        for text in
            ["", "/", "a/", "/a", "a//b", "..", "a/../b", ".hidden", "a/.b", "a b", "a\\b", "ä", "a\0"]
        {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
        assert_eq!(Key::parse(&"a".repeat(201)), None);
        assert_eq!(Key::parse(&["a"; 300].join("/")), None);
    }
}

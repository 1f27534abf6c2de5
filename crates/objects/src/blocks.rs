//! Archives that arrive in blocks: each is staged under its id, then a list gives their order in the archive.
//!
//! The names and the list are those of the Azure Blob protocol (`comp=block`, `comp=blocklist`), so that its clients
//! work. Staged blocks are bounded in number and size, and are not read before the list has arrived.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::{DeployId, DeploymentId};

use crate::error::Refused;
use crate::key::Key;

/// How many blocks an archive can be sent in.
pub(crate) const MOST_BLOCKS: usize = 2_000;
const LONGEST_ID: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staging(pub(crate) Key);

impl Staging {
    /// For an upload of a deploy; `kind` distinguishes its uploads and is one lower-case word.
    pub fn new(deployment_id: DeploymentId, deploy_id: DeployId, kind: &'static str) -> Self {
        debug_assert!(kind.bytes().all(|byte| byte.is_ascii_lowercase()));
        Self(Key::of_staging(deployment_id, deploy_id).below(kind))
    }

    pub(crate) fn block(&self, id: &BlockId) -> Key {
        self.0.below(&id.to_hex())
    }
}

/// The id of a block, unique in its archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockId(pub(crate) Vec<u8>);

impl BlockId {
    /// From base64.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let bytes = STANDARD.decode(text).map_err(|_| Refused::BlockId)?;
        if (1..=LONGEST_ID).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(Refused::BlockId) }
    }

    /// As the client wrote it, in base64.
    pub(crate) fn printable(&self) -> String {
        STANDARD.encode(&self.0)
    }

    pub fn to_hex(&self) -> String {
        podium_api::hex(&self.0)
    }
}

/// The blocks of an archive in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockList(pub(crate) Vec<BlockId>);

impl BlockList {
    /// Reads `<BlockList><Latest>id</Latest>…</BlockList>`.
    pub fn parse(xml: &str) -> Result<Self, Refused> {
        let mut rest = skip(xml.trim_start_matches('\u{feff}'));
        if let Some(after) = rest.strip_prefix("<?xml") {
            rest = skip(after.split_once("?>").ok_or(Refused::BlockList)?.1);
        }
        if let Some(after) = rest.strip_prefix("<BlockList/>").or_else(|| rest.strip_prefix("<BlockList />"))
        {
            return if skip(after).is_empty() { Ok(Self(Vec::new())) } else { Err(Refused::BlockList) };
        }
        rest = skip(rest.strip_prefix("<BlockList>").ok_or(Refused::BlockList)?);
        let mut ids = Vec::new();
        loop {
            if let Some(after) = rest.strip_prefix("</BlockList>") {
                return if skip(after).is_empty() { Ok(Self(ids)) } else { Err(Refused::BlockList) };
            }
            if ids.len() == MOST_BLOCKS {
                return Err(Refused::TooManyBlocks(MOST_BLOCKS));
            }
            // All blocks are uncommitted here: an archive is committed once and as a whole.
            let (id, after) =
                element(rest, "Latest").or_else(|| element(rest, "Uncommitted")).ok_or(Refused::BlockList)?;
            ids.push(BlockId::parse(id.trim())?);
            rest = skip(after);
        }
    }
}

/// The text of the element that comes first, and what follows it.
fn element<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let inner = text.strip_prefix('<')?.strip_prefix(name)?.strip_prefix('>')?;
    let (content, after) = inner.split_once("</")?;
    Some((content, after.strip_prefix(name)?.strip_prefix('>')?))
}

/// What follows white space and comments.
fn skip(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
        Some((_, after)) => skip(after),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;

    fn printable(list: &str) -> Result<Vec<String>, Refused> {
        BlockList::parse(list).map(|list| list.0.iter().map(BlockId::printable).collect())
    }

    #[test]
    fn lists_of_blocks_are_read() {
        let list = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n  <Latest>YQ==</Latest>\n\
            <!-- then --><Uncommitted>++//</Uncommitted><Latest> Yg== </Latest></BlockList>\n";
        assert_eq!(printable(list).unwrap(), ["YQ==", "++//", "Yg=="]);
        assert_eq!(printable("<BlockList></BlockList>").unwrap(), [""; 0]);
        assert_eq!(printable("<BlockList />").unwrap(), [""; 0]);
    }

    #[test]
    fn other_lists_are_refused() {
        for list in [
            "",
            "<BlockList>",
            "<BlockList><Latest>YQ==</BlockList>",
            "<BlockList><Latest>YQ==</Uncommitted></BlockList>",
            "<BlockList><Committed>YQ==</Committed></BlockList>",
            "<BlockList></BlockList><BlockList></BlockList>",
            "<BlockList><!-- </BlockList>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><BlockList></BlockList>",
            "{\"BlockList\": []}",
        ] {
            assert_eq!(printable(list), Err(Refused::BlockList), "{list}");
        }
        for id in ["", "a", "a b=", "YQ", "&amp;"] {
            assert_eq!(
                printable(&format!("<BlockList><Latest>{id}</Latest></BlockList>")),
                Err(Refused::BlockId),
                "{id}"
            );
        }
        let many = "<Latest>YQ==</Latest>".repeat(MOST_BLOCKS + 1);
        let many = format!("<BlockList>{many}</BlockList>");
        assert_eq!(printable(&many), Err(Refused::TooManyBlocks(MOST_BLOCKS)));
    }

    #[test]
    fn block_ids_are_short() {
        assert!(BlockId::parse(&STANDARD.encode([7; 64])).is_ok());
        assert_eq!(BlockId::parse(&STANDARD.encode([7; 65])), Err(Refused::BlockId));
        let (deployment_id, deploy_id) =
            (DeploymentId::from_raw(Id::from_parts(0, 1, 0)), DeployId::from_raw(Id::from_parts(0, 2, 0)));
        let block = Staging::new(deployment_id, deploy_id, "dags").block(&BlockId::parse("++//").unwrap());
        assert_eq!(block.as_str(), format!("deployments/{deployment_id}/{deploy_id}/staged/dags/fbefff"));
    }
}

//! Why an upload is refused: an error of its sender, or a failure of the store.

use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an upload failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The uploaded data is invalid.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store failed: its disk is full, or it is unavailable.
    #[error("the object store failed: {0}")]
    Store(#[from] io::Error),
}

/// What is wrong with the uploaded data, as a text that follows "the archive was refused:".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The first bytes are not those of gzip.
    #[error("it is not compressed with gzip")]
    NotGzip,
    /// The gzip data does not match its checksums, ends too early, or continues after its end.
    #[error("its gzip data is damaged, truncated or followed by other data")]
    BrokenGzip,
    /// The compressed data is not a tar archive.
    #[error("it is not a complete tar archive: {0}")]
    NotTar(&'static str),
    /// More bytes than are accepted.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// More bytes than may be unpacked.
    #[error("it unpacks to more than {0} bytes")]
    UnpacksTooLarge(u64),
    /// More bytes than an archive of its size may unpack to.
    #[error("it unpacks to more than {most} bytes, the most for an archive of {bytes} bytes")]
    UnpacksTooMuch {
        bytes: u64,
        /// What they may unpack to.
        most: u64,
    },
    /// More entries than may be unpacked.
    #[error("it has more than {0} entries")]
    TooManyEntries(u64),
    /// The paths alone would take too much memory.
    #[error("its paths are longer than {0} bytes in total")]
    TooManyNames(usize),
    /// Something is wrong with one entry.
    #[error("the entry `{name}` {flaw}")]
    Entry {
        /// Its path as it stands in the archive.
        name: String,
        /// What is wrong with it.
        flaw: Flaw,
    },
    #[error("a block id is 1 to 64 bytes in base64")]
    BlockId,
    #[error("the list of blocks is not `<BlockList><Latest>block id</Latest>…</BlockList>`")]
    BlockList,
    /// The list names a block that was not sent.
    #[error("the block `{0}` of the list was not uploaded")]
    UnknownBlock(String),
    /// More blocks than are accepted.
    #[error("it is sent in more than {0} blocks: send larger ones")]
    TooManyBlocks(usize),
}

/// What is wrong with one entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Its path begins at the root.
    #[error("has an absolute path: paths are relative")]
    Absolute,
    /// Its path goes up.
    #[error("has `..` in its path")]
    Parent,
    #[error("has no path")]
    EmptyPath,
    /// Its path is not printable text.
    #[error("has a path that is not UTF-8, or holds control characters")]
    NotText,
    #[error("has a path of more than {0} bytes")]
    LongPath(usize),
    /// It is a link to a target outside the archive.
    #[error("is a link to `{0}`, which is or may be outside the archive")]
    LeavesTree(String),
    /// It is a hard link to something other than an earlier file.
    #[error("is a hard link to `{0}`, which is not a file that precedes it in the archive")]
    LinkToNothing(String),
    #[error("is a device or a pipe: an archive holds files, directories and links")]
    Device,
    /// It is of a type that is not supported everywhere.
    #[error("is of the kind `{0}`: an archive holds files, directories and links")]
    Kind(char),
    /// It is stored as a sparse file.
    #[error("is stored as a sparse file: pack the archive without sparse files")]
    Sparse,
    /// It is below something other than a directory, or at the path of a directory.
    #[error("collides with `{0}`, which is of another kind")]
    Collides(String),
    #[error("is described twice: {0}")]
    Ambiguous(&'static str),
    #[error("has a damaged header: {0}")]
    Header(&'static str),
}

pub(crate) fn printable(name: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(name);
    let mut out: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > LONGEST {
        out.push('…');
    }
    out
}

//! Walks a tar archive that arrives in pieces of any size.

use std::io;

use super::header::{BLOCK, Header, Pax, read_pax};
use super::listing::Listing;
use super::tree::{Node, Tree, clean, stays_inside};
use crate::archive::Limits;
use crate::error::{Flaw, Refused, printable};

/// The largest extended header or long name that is read.
const LARGEST_EXTENDED_HEADER: u64 = 64 * 1024;

/// Where in the archive the next byte is.
enum State {
    /// In a header, or in a block of zeros where one could be.
    Header { block: Box<[u8; BLOCK]>, filled: usize },
    /// In the content of a file, or what fills its last block.
    Content { left: u64 },
    /// In an entry that describes the next one.
    Meta { kind: u8, content: Vec<u8>, size: usize, padding: usize },
    /// After the first block of zeros.
    End { zeros: u64 },
}

/// The next header is awaited.
impl Default for State {
    fn default() -> Self {
        Self::Header { block: Box::new([0; BLOCK]), filled: 0 }
    }
}

/// Extended headers that apply to the next entry.
#[derive(Default)]
struct ExtendedHeaders {
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

impl ExtendedHeaders {
    fn is_empty(&self) -> bool {
        self.long_name.is_none() && self.long_link.is_none() && self.pax.is_none()
    }
}

/// Checks a tar archive while it arrives.
#[derive(Default)]
pub(super) struct Tar {
    limits: Limits,
    state: State,
    extended: ExtendedHeaders,
    tree: Tree,
    pub(super) bytes: u64,
    pub(super) entries: u64,
    has_begun: bool,
    pub(super) refusal: Option<Refused>,
    pub(super) listing: Option<Listing>,
}

impl Tar {
    /// With a listing, the hash of every file is taken too.
    pub(super) fn new(limits: Limits, listing: Option<Listing>) -> Self {
        Self { limits, listing, ..Self::default() }
    }

    pub(super) fn finish(&self) -> Result<(), Refused> {
        match &self.state {
            State::End { zeros } if zeros % BLOCK as u64 != 0 => {
                Err(Refused::NotTar("it does not end with a full block"))
            }
            State::End { zeros } if *zeros >= 2 * BLOCK as u64 => Ok(()),
            State::Header { .. } if self.bytes == 0 => Err(Refused::NotTar("it is empty")),
            _ => Err(Refused::NotTar("it ends before its end-of-archive marker")),
        }
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Refused> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limits.unpacked {
            return Err(Refused::UnpacksTooLarge(self.limits.unpacked));
        }
        while !bytes.is_empty() {
            bytes = self.step(bytes)?;
        }
        Ok(())
    }

    /// Consumes the bytes of one part of the archive and returns the rest.
    fn step<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Refused> {
        match &mut self.state {
            State::Header { block, filled } => {
                let (taken, rest) = split(bytes, BLOCK - *filled);
                block[*filled..*filled + taken.len()].copy_from_slice(taken);
                *filled += taken.len();
                if *filled == BLOCK {
                    let block = std::mem::replace(block, Box::new([0; BLOCK]));
                    self.state = self.block(&block)?;
                }
                Ok(rest)
            }
            State::Content { left } => {
                let (taken, rest) = split(bytes, usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken.len() as u64;
                if let Some(listing) = &mut self.listing {
                    listing.content(taken);
                }
                if *left == 0 {
                    self.state = State::default();
                }
                Ok(rest)
            }
            State::Meta { kind, content, size, padding } => {
                let (taken, rest) = split(bytes, *size + *padding - content.len());
                content.extend_from_slice(taken);
                if content.len() == *size + *padding {
                    content.truncate(*size);
                    let (kind, content) = (*kind, std::mem::take(content));
                    self.state = State::default();
                    self.note(kind, content).map_err(|flaw| refused(b"extended header", flaw))?;
                }
                Ok(rest)
            }
            State::End { zeros } => {
                if bytes.iter().any(|byte| *byte != 0) {
                    return Err(Refused::NotTar("data follows its end-of-archive marker"));
                }
                *zeros += bytes.len() as u64;
                Ok(&[])
            }
        }
    }

    /// Checks a block at the position of a header.
    fn block(&mut self, block: &[u8; BLOCK]) -> Result<State, Refused> {
        if block.iter().all(|byte| *byte == 0) {
            return match self.extended.is_empty() {
                true => Ok(State::End { zeros: BLOCK as u64 }),
                false => Err(Refused::NotTar("its last entry is missing")),
            };
        }
        let header = match Header::read(block) {
            Ok(header) => header,
            Err(_) if !self.has_begun => return Err(Refused::NotTar("it does not begin with a tar header")),
            Err(flaw) => return Err(refused(Header::name_of(block), flaw)),
        };
        self.has_begun = true;
        // Extended headers are not counted: an entry has at most one of each kind.
        if matches!(header.kind, b'x' | b'L' | b'K') {
            return self.meta(&header);
        }
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(Refused::TooManyEntries(self.limits.entries));
        }
        if header.kind == b'g' { self.meta(&header) } else { self.entry(&header) }
    }

    /// An entry that describes the next one, or all that follow.
    fn meta(&mut self, header: &Header) -> Result<State, Refused> {
        let too_large = || refused(&header.name, Flaw::Header("it is too large to describe an entry"));
        if header.size > LARGEST_EXTENDED_HEADER {
            return Err(too_large());
        }
        let size = usize::try_from(header.size).map_err(|_| too_large())?;
        if size == 0 {
            return self
                .note(header.kind, Vec::new())
                .map(|()| State::default())
                .map_err(|flaw| refused(&header.name, flaw));
        }
        let padding = size.next_multiple_of(BLOCK) - size;
        Ok(State::Meta { kind: header.kind, content: Vec::with_capacity(size + padding), size, padding })
    }

    fn note(&mut self, kind: u8, content: Vec<u8>) -> Result<(), Flaw> {
        let unterminated = |mut content: Vec<u8>| {
            while content.last() == Some(&0) {
                content.pop();
            }
            content
        };
        let is_second = match kind {
            b'L' => self.extended.long_name.replace(unterminated(content)).is_some(),
            b'K' => self.extended.long_link.replace(unterminated(content)).is_some(),
            b'x' => self.extended.pax.replace(read_pax(&content)?).is_some(),
            // Applies to all following entries: comments are allowed, names and sizes are not.
            _ => {
                let all = read_pax(&content)?;
                if all != Pax::default() {
                    return Err(Flaw::Ambiguous("a global header sets names or sizes of entries"));
                }
                false
            }
        };
        if is_second {
            Err(Flaw::Ambiguous("two headers of the same kind describe one entry"))
        } else {
            Ok(())
        }
    }

    /// An entry that would be unpacked.
    fn entry(&mut self, header: &Header) -> Result<State, Refused> {
        let said = std::mem::take(&mut self.extended);
        let pax = said.pax.unwrap_or_default();
        let two = |flaw| refused(&header.name, Flaw::Ambiguous(flaw));
        if pax.size.is_some_and(|size| size != header.size) {
            return Err(two("its two sizes differ"));
        }
        let name = match (pax.path, said.long_name) {
            (Some(_), Some(_)) => return Err(two("it has two long names")),
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => header.name.clone(),
        };
        let link = match (pax.link, said.long_link) {
            (Some(_), Some(_)) => return Err(two("it has two long link targets")),
            (Some(link), None) | (None, Some(link)) => link,
            (None, None) => header.link.clone(),
        };
        let longest = self.limits.path;
        let wrong = |flaw| refused(&name, flaw);
        let path = clean(&name, longest).map_err(wrong)?;
        let mut has_content = false;
        let node = match header.kind {
            // Old archives mark directories by a trailing slash.
            0 if name == header.name && name.ends_with(b"/") => Node::Directory,
            0 | b'0' | b'7' if name.ends_with(b"/") || header.name.ends_with(b"/") => {
                return Err(wrong(Flaw::Ambiguous("a file with the name of a directory")));
            }
            0 | b'0' | b'7' => {
                has_content = true;
                Node::File
            }
            b'1' if self.tree.has_file(&link, longest) => Node::File,
            b'1' => return Err(wrong(Flaw::LinkToNothing(printable(&link)))),
            b'2' => {
                stays_inside(&path, &link, longest).map_err(wrong)?;
                Node::Link
            }
            b'5' => Node::Directory,
            b'3' | b'4' | b'6' => return Err(wrong(Flaw::Device)),
            b'S' => return Err(wrong(Flaw::Sparse)),
            kind => {
                let shown = if kind.is_ascii_graphic() { char::from(kind) } else { '?' };
                return Err(wrong(Flaw::Kind(shown)));
            }
        };
        if !has_content && header.size != 0 {
            return Err(wrong(Flaw::Ambiguous("only files have content")));
        }
        self.tree.add(&path, node)?.map_err(wrong)?;
        match &mut self.listing {
            Some(listing) if has_content => listing.begin(path, header.size),
            Some(listing) if node == Node::File => {
                listing.link(path, &clean(&link, longest).map_err(wrong)?);
            }
            _ => {}
        }
        let left = header.size.checked_next_multiple_of(BLOCK as u64);
        match left.ok_or_else(|| wrong(Flaw::Header("its size is not a number")))? {
            0 => Ok(State::default()),
            left => Ok(State::Content { left }),
        }
    }
}

impl io::Write for Tar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.push(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(refusal) => {
                self.refusal.get_or_insert(refusal);
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at(at.min(bytes.len()))
}

fn refused(name: &[u8], flaw: Flaw) -> Refused {
    Refused::Entry { name: printable(name), flaw }
}

//! Segments from outside: what was put in is read, by words too, and damage costs only what is damaged.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{FIRST_HEADER, FOOTER, Footer, HEADER, Header, MARK, SUM, seal};
use super::*;
use crate::block::Block;
use crate::hour::Hour;
use crate::query;

/// A segment of blocks with three lines each, and what is in it.
fn made(directory: &TempDir, blocks: usize) -> (PathBuf, Vec<Block>) {
    let mut encoder = Encoder::new().unwrap();
    let hour = Hour::parse("2027-01-15T08").unwrap();
    let mut builder = Builder::new(&mut encoder, directory.path(), hour).unwrap();
    let mut put = Vec::new();
    for number in 0..blocks {
        let mut block = Block::default();
        for line in 0..3 {
            let at = number * 3 + line;
            block.push(
                at as i64,
                100 + at as u64,
                (at % 6) as u8,
                &format!("word{number} common line {at} é"),
            );
        }
        builder.add(&block).unwrap();
        put.push(block);
    }
    let segment = builder.finish(false).unwrap().unwrap();
    let name = segment.name;
    assert_eq!((name.first, name.last), (100, 99 + 3 * blocks as u64));
    segment.publish(name).unwrap();
    (directory.path().join(name.to_string()), put)
}

fn read(segment: &Segment) -> Vec<Option<Block>> {
    let mut unpacker = Unpacker::default();
    (0..segment.len()).map(|number| segment.block(number, &mut unpacker).unwrap()).collect()
}

#[test]
fn a_segment_gives_back_its_blocks_and_finds_them_by_words() {
    let directory = TempDir::new().unwrap();
    let (path, put) = made(&directory, 200);
    let segment = Segment::open(&path).unwrap();
    assert!(segment.is_sound().unwrap());
    assert_eq!(read(&segment).into_iter().flatten().collect::<Vec<_>>(), put);
    for number in [0, 1, 63, 64, 199] {
        let found = segment.holding(&[query::of_word(format!("word{number}").as_bytes())]).unwrap();
        assert_eq!((0..200).filter(|block| found.has(*block)).collect::<Vec<_>>(), [number]);
    }
    let everywhere = segment.holding(&[query::of_word(b"common"), query::of_prefix(b"word").unwrap()]);
    assert!((0..200).all(|block| everywhere.as_ref().unwrap().has(block)));
    assert!(segment.holding(&[query::of_word(b"absent")]).unwrap().is_empty());
}

#[test]
fn copied_blocks_keep_their_words() {
    let directory = TempDir::new().unwrap();
    let (path, put) = made(&directory, 10);
    let segment = Segment::open(&path).unwrap();
    let other = TempDir::new().unwrap();
    let mut encoder = Encoder::new().unwrap();
    let hour = Hour::parse("2027-01-15T08").unwrap();
    let mut builder = Builder::new(&mut encoder, other.path(), hour).unwrap();
    let mut some = Blocks::NONE;
    [2, 5, 9].into_iter().for_each(|block| some.add(block));
    builder.copy(&segment, &some).unwrap();
    let copied = builder.finish(true).unwrap().unwrap();
    let name = copied.name;
    copied.publish(name).unwrap();
    let copied = Segment::open(&other.path().join(name.to_string())).unwrap();
    let blocks: Vec<Block> = read(&copied).into_iter().flatten().collect();
    assert_eq!(blocks, [put[2].clone(), put[5].clone(), put[9].clone()]);
    let found = copied.holding(&[query::of_word(b"word5")]).unwrap();
    assert_eq!((0..3).filter(|block| found.has(*block)).collect::<Vec<_>>(), [1]);
}

/// The same segment in the first version of the format, without tallies.
fn in_first_version(bytes: &[u8], segment: &Segment) -> Vec<u8> {
    let first_version = |header: &Header| {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        bytes.truncate(FIRST_HEADER - SUM);
        bytes[MARK.len()] = b'1';
        seal(&mut bytes, 0);
        bytes
    };
    let footer = Footer::read(&bytes[bytes.len() - FOOTER..]).unwrap();
    let mut old = b"podlogs1".to_vec();
    for (number, header) in segment.headers().enumerate() {
        old.extend(first_version(header));
        old.extend(segment.stored(number).unwrap().unwrap().1);
    }
    let index = old.len() as u64;
    old.extend(&bytes[footer.index as usize..footer.directory as usize]);
    let directory = old.len();
    old.extend(segment.headers().flat_map(first_version));
    let sum = xxh3_64(&old[directory..]);
    Footer { index, directory: directory as u64, sum, ..footer }.write(&mut old);
    old
}

#[test]
fn segments_of_the_first_version_are_read_and_copied() {
    let directory = TempDir::new().unwrap();
    let (path, put) = made(&directory, 12);
    let bytes = fs::read(&path).unwrap();
    let old = in_first_version(&bytes, &Segment::open(&path).unwrap());
    assert_eq!(old.len(), bytes.len() - 2 * 12 * (HEADER - FIRST_HEADER));
    for length in [old.len(), old.len() - 1] {
        fs::write(&path, &old[..length]).unwrap();
        let segment = Segment::open(&path).unwrap();
        assert_eq!(segment.is_sound().unwrap(), length == old.len());
        assert_eq!(read(&segment).into_iter().flatten().collect::<Vec<_>>(), put);
        assert!(segment.headers().all(|header| !header.tally.counts(header.summary.lines)));
    }
    fs::write(&path, &old).unwrap();
    let other = TempDir::new().unwrap();
    let mut encoder = Encoder::new().unwrap();
    let hour = Hour::parse("2027-01-15T08").unwrap();
    let mut builder = Builder::new(&mut encoder, other.path(), hour).unwrap();
    builder.copy(&Segment::open(&path).unwrap(), &Blocks::ALL).unwrap();
    builder.add(&put[0]).unwrap();
    let copied = builder.finish(true).unwrap().unwrap();
    let name = copied.name;
    copied.publish(name).unwrap();
    let copied = Segment::open(&other.path().join(name.to_string())).unwrap();
    assert_eq!(read(&copied).into_iter().flatten().count(), 13);
    let known: Vec<bool> = copied.headers().map(|header| header.tally.counts(header.summary.lines)).collect();
    assert_eq!(known, [vec![false; 12], vec![true]].concat());
}

/// What can happen to bytes.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip { at: usize, bit: u8 },
    Cut { at: usize },
    Drop { at: usize, length: usize },
    Repeat { at: usize, length: usize, to: usize },
    Zero { at: usize, length: usize },
}

impl Damage {
    /// Does it; places count from the front and wrap around.
    pub(crate) fn to(&self, bytes: &mut Vec<u8>) {
        let whole = bytes.len();
        let range = |at: usize, length: usize| at % whole..(at % whole + length).min(whole);
        match *self {
            Self::Flip { at, bit } => bytes[at % whole] ^= 1 << bit,
            Self::Cut { at } => bytes.truncate(at % whole),
            Self::Drop { at, length } => drop(bytes.drain(range(at, length))),
            Self::Zero { at, length } => bytes[range(at, length)].fill(0),
            Self::Repeat { at, length, to } => {
                let again = bytes[range(at, length)].to_vec();
                bytes.splice(to % whole..to % whole, again);
            }
        }
    }
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0..1_000_000usize;
    let length = || 1..3000usize;
    prop_oneof![
        4 => (at(), 0..8u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        1 => at().prop_map(|at| Damage::Cut { at }),
        1 => (at(), length()).prop_map(|(at, length)| Damage::Drop { at, length }),
        1 => (at(), length()).prop_map(|(at, length)| Damage::Zero { at, length }),
        2 => (at(), length(), at()).prop_map(|(at, length, to)| Damage::Repeat { at, length, to }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_damaged_segment_gives_no_wrong_block(done in proptest::collection::vec(damage(), 1..4)) {
        let directory = TempDir::new().unwrap();
        let (path, put) = made(&directory, 12);
        let mut bytes = fs::read(&path).unwrap();
        for damage in done {
            if !bytes.is_empty() {
                damage.to(&mut bytes);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(segment) = Segment::open(&path) else { return Ok(()) };
        let blocks = read(&segment);
        for block in blocks.iter().flatten() {
            prop_assert!(put.contains(block));
        }
        let _ = segment.is_sound();
        let _ = segment.holding(&[query::of_word(b"word5")]);
    }
}

#[test]
fn a_segment_without_its_end_is_read_by_its_headers() {
    let directory = TempDir::new().unwrap();
    let (path, put) = made(&directory, 12);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let segment = Segment::open(&path).unwrap();
    assert_eq!(read(&segment).into_iter().flatten().collect::<Vec<_>>(), put);
    assert!(!segment.is_sound().unwrap());
}

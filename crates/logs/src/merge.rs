//! Merges small segments, so that a search opens few files.
//!
//! Well filled blocks are copied as they are stored; small ones are unpacked and combined. Merged segments are replaced
//! under a lock, so that a list of segments is made before or after, never in between.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::PoisonError;

use podium_api::DeploymentId;

use crate::block::{Block, FULL};
use crate::hour::Key;
use crate::missing_is_none;
use crate::segment::{Blocks, Builder, Encoder, MAX_BLOCKS, Name, Segment, Unpacker};
use crate::shared::Shared;

/// How many segments of similar size are merged.
const SEVERAL: usize = 8;
/// The smallest size class; each further one is [`SEVERAL`] times as large.
const SMALLEST: u64 = 8 * 1024;
/// The maximum file size of a merged segment.
const LARGEST: u64 = 24 * 1024 * 1024;
/// A block with this much text is copied as it is.
const WELL_FILLED: usize = FULL / 2;

struct Candidate {
    name: Name,
    length: u64,
    blocks: usize,
}

/// Merges the newest segments of an hour if there are several of similar size.
pub(crate) fn merge_small(shared: &Shared, encoder: &mut Encoder, key: Key) -> io::Result<()> {
    let directory = shared.directory(key.0);
    let mut names = Name::list(&directory)?;
    names.retain(|name| name.hour == key.1);
    if names.len() < SEVERAL {
        return Ok(());
    }
    let found = candidates(&directory, &names)?;
    let mut size = SMALLEST;
    while size <= LARGEST {
        let small = found.iter().rev().take_while(|one| one.length <= size).count();
        let run = &found[found.len() - small..];
        if small >= SEVERAL {
            return runs(shared, encoder, key.0, run);
        }
        size *= SEVERAL as u64;
    }
    Ok(())
}

/// Merges the segments of past hours as far as they fit together.
pub(crate) fn merge_finished_hours(
    shared: &Shared,
    encoder: &mut Encoder,
    id: DeploymentId,
    is_over: impl Fn(&Name) -> bool,
) -> io::Result<()> {
    let directory = shared.directory(id);
    drop_covered(&directory)?;
    let mut names = Name::list(&directory)?;
    names.retain(is_over);
    for hour in names.chunk_by(|left, right| left.hour == right.hour).filter(|hour| hour.len() > 1) {
        runs(shared, encoder, id, &candidates(&directory, hour)?)?;
    }
    Ok(())
}

/// Deletes segments that were merged by a process that ended before it could delete them.
fn drop_covered(directory: &Path) -> io::Result<()> {
    let kept = Name::list(directory)?;
    for name in Name::list_all(directory)?.iter().filter(|name| !kept.contains(name)) {
        missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
    }
    Ok(())
}

fn candidates(directory: &Path, names: &[Name]) -> io::Result<Vec<Candidate>> {
    let candidate = |name: &Name| {
        let path = directory.join(name.to_string());
        let blocks = Segment::open(&path)?.len();
        Ok(Candidate { name: *name, length: fs::metadata(&path)?.len(), blocks })
    };
    names.iter().map(candidate).collect()
}

/// Merges adjacent segments as long as they fit into one.
fn runs(shared: &Shared, encoder: &mut Encoder, id: DeploymentId, found: &[Candidate]) -> io::Result<()> {
    let mut run: Vec<Name> = Vec::new();
    let (mut length, mut blocks) = (0, 0);
    for one in found {
        if length + one.length > LARGEST || blocks + one.blocks > MAX_BLOCKS {
            merge(shared, encoder, id, &run)?;
            run.clear();
            (length, blocks) = (0, 0);
        }
        run.push(one.name);
        length += one.length;
        blocks += one.blocks;
    }
    merge(shared, encoder, id, &run)
}

/// Replaces adjacent segments by one.
fn merge(shared: &Shared, encoder: &mut Encoder, id: DeploymentId, run: &[Name]) -> io::Result<()> {
    let [first, .., last] = run else { return Ok(()) };
    let directory = shared.directory(id);
    let mut builder = Builder::new(encoder, &directory, first.hour)?;
    let mut unpacker = Unpacker::default();
    let mut small = Block::default();
    for name in run {
        let segment = Segment::open(&directory.join(name.to_string()))?;
        let mut filled = Blocks::NONE;
        let is_sound = segment.is_sound()?;
        for (number, header) in segment.headers().enumerate() {
            if is_sound && header.packed as usize >= WELL_FILLED {
                filled.add(number);
                continue;
            }
            let Some(block) = segment.block(number, &mut unpacker)? else { continue };
            for index in 0..block.len() {
                let text = block.text_of(index);
                if small.is_full_for(text.len()) {
                    builder.add(&std::mem::take(&mut small))?;
                }
                small.push(block.millis[index], block.numbers[index], block.sources[index], text);
            }
        }
        if !filled.is_empty() {
            builder.copy(&segment, &filled)?;
        }
    }
    if !small.is_empty() {
        builder.add(&small)?;
    }
    // If everything is damaged, there is nothing to replace them with.
    let Some(merged) = builder.finish(true)? else { return Ok(()) };
    let _alone = shared.names.write().unwrap_or_else(PoisonError::into_inner);
    merged.publish(Name { hour: first.hour, first: first.first, last: last.last })?;
    for name in run {
        missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
    }
    Ok(())
}

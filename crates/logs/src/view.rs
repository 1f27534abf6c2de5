//! A consistent view of a deployment's lines: tails in memory and segments on disk, each line in only one of them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use podium_api::DeploymentId;

use crate::block::{Block, Summary};
use crate::hour::Hour;
use crate::parallel_scan::Source;
use crate::segment::{Name, Segment, Unpacker};
use crate::shared::Shared;
use crate::tally::Tally;

const OPEN: usize = 32;
/// How many unpacked blocks are cached in addition to those of the current scan.
const UNPACKED: usize = 6;

#[derive(Default)]
pub(crate) struct HourView {
    tails: Vec<Arc<Block>>,
    segments: Vec<Name>,
}

pub(crate) struct View {
    directory: PathBuf,
    pub(crate) hours: BTreeMap<Hour, HourView>,
    open: Vec<(Name, Arc<Segment>)>,
    unpacker: Unpacker,
    unpacked: Vec<(Place, Arc<Block>)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    Memory(Arc<Block>),
    Stored(Name, usize),
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Memory(own), Self::Memory(others)) => Arc::ptr_eq(own, others),
            (Self::Stored(own, number), Self::Stored(others, other)) => (own, number) == (others, other),
            _ => false,
        }
    }
}

/// A block that may contain hits.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) summary: Summary,
    /// Empty if it is not known.
    pub(crate) tally: Tally,
    pub(crate) place: Place,
}

impl View {
    /// The current lines in hours that fit, after a number.
    pub(crate) fn new(
        shared: &Shared,
        deployment_id: DeploymentId,
        after: Option<u64>,
        fits: impl Fn(Hour) -> bool,
    ) -> io::Result<Self> {
        let directory = shared.directory(deployment_id);
        // Memory first: a line that is flushed in the meantime is then in a segment.
        let tails = shared.tails.view(deployment_id, after, &fits);
        let names = {
            let _steady = shared.names.read().unwrap_or_else(PoisonError::into_inner);
            Name::list(&directory)?
        };
        let mut hours: BTreeMap<Hour, HourView> = BTreeMap::new();
        for name in names.into_iter().filter(|name| fits(name.hour)) {
            hours.entry(name.hour).or_default().segments.push(name);
        }
        for seen in tails {
            let hour = hours.entry(seen.hour).or_default();
            if !hour.segments.iter().any(|name| name.last >= seen.last) {
                hour.tails.extend(seen.blocks);
            }
        }
        for hour in hours.values_mut() {
            hour.segments.retain(|name| after.is_none_or(|after| name.last > after));
        }
        let (open, unpacked) = (Vec::new(), Vec::new());
        Ok(Self { directory, hours, open, unpacker: Unpacker::default(), unpacked })
    }

    /// The blocks of an hour that fit and may contain all of these words.
    pub(crate) fn candidates(
        &mut self,
        hour: Hour,
        words: &[u32],
        fits: impl Fn(&Summary) -> bool,
    ) -> io::Result<Vec<Candidate>> {
        let Some(HourView { tails, segments }) = self.hours.remove(&hour) else { return Ok(Vec::new()) };
        let in_memory = tails.into_iter().map(|block| Candidate {
            summary: block.summary(),
            tally: Tally::default(),
            place: Place::Memory(block),
        });
        let mut found: Vec<Candidate> = in_memory.filter(|candidate| fits(&candidate.summary)).collect();
        for name in segments {
            let segment = self.segment(name)?;
            if !segment.headers().any(|header| fits(&header.summary)) {
                continue;
            }
            let holding = segment.holding(words)?;
            let headers = segment.headers().enumerate();
            let fitting = headers.filter(|(number, header)| holding.has(*number) && fits(&header.summary));
            found.extend(fitting.map(|(number, header)| Candidate {
                summary: header.summary,
                tally: header.tally,
                place: Place::Stored(name, number),
            }));
        }
        Ok(found)
    }

    fn segment(&mut self, name: Name) -> io::Result<Arc<Segment>> {
        if let Some((_, segment)) = self.open.iter().find(|(known, _)| *known == name) {
            return Ok(Arc::clone(segment));
        }
        if self.open.len() >= OPEN {
            self.open.remove(0);
        }
        let segment = Arc::new(Segment::open(&self.directory.join(name.to_string()))?);
        self.open.push((name, Arc::clone(&segment)));
        Ok(segment)
    }

    /// A block to be scanned by another thread.
    pub(crate) fn source(&mut self, place: &Place) -> io::Result<Source> {
        Ok(match place {
            Place::Memory(block) => Source::Memory(Arc::clone(block)),
            Place::Stored(name, number) => Source::Stored(self.segment(*name)?, *number),
        })
    }

    /// Caches a scanned block, and evicts older ones beyond the limit.
    pub(crate) fn hold(&mut self, place: &Place, block: Arc<Block>, most: usize) {
        if matches!(place, Place::Stored(..)) {
            let too_many = (self.unpacked.len() + 1).saturating_sub(UNPACKED + most);
            self.unpacked.drain(..too_many);
            self.unpacked.push((place.clone(), block));
        }
    }

    /// A block; `None` if it is damaged.
    pub(crate) fn block(&mut self, place: &Place) -> io::Result<Option<Arc<Block>>> {
        let (name, number) = match place {
            Place::Memory(block) => return Ok(Some(Arc::clone(block))),
            Place::Stored(name, number) => (*name, *number),
        };
        if let Some((_, block)) = self.unpacked.iter().find(|(known, _)| known == place) {
            return Ok(Some(Arc::clone(block)));
        }
        let segment = self.segment(name)?;
        let Some(block) = segment.block(number, &mut self.unpacker)? else { return Ok(None) };
        let block = Arc::new(block);
        self.hold(place, Arc::clone(&block), 0);
        Ok(Some(block))
    }
}

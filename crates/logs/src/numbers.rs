//! Numbers of lines, given out in the order of writing and never twice, whatever happens to the lines.
//!
//! A file holds how often numbers have begun; each opening of the store begins a new stretch of them. So nothing has to
//! be written down for each line, and a number that a reader remembers stays behind everything that comes later.

use std::{fs, io};

use crate::segment::Name;
use crate::shared::Shared;
use crate::{missing_is_none, replace};

const FILE: &str = "stretch";
/// How many bits of a number count inside a stretch.
const BITS: u32 = 40;

/// The first number of the next stretch: no line has been given it or a higher one.
pub(crate) fn next(shared: &Shared, highest_seen: u64) -> io::Result<u64> {
    let noted = missing_is_none(fs::read_to_string(shared.root().join(FILE)))?;
    let noted = match noted.map(|text| text.trim().parse::<u64>()) {
        Some(Ok(noted)) => noted,
        // It is lost: the names of segments say what has been given out.
        Some(Err(_)) | None => highest_in_segments(shared)? >> BITS,
    };
    Ok((noted.max(highest_seen >> BITS) + 1) << BITS)
}

/// Writes down that the stretch of a number has begun.
pub(crate) fn begin(shared: &Shared, first: u64) -> io::Result<()> {
    fs::create_dir_all(shared.root())?;
    replace(&shared.root().join(FILE), format!("{}\n", first >> BITS).as_bytes())
}

fn highest_in_segments(shared: &Shared) -> io::Result<u64> {
    let mut highest = 0;
    for id in shared.deployments()? {
        let names = Name::list_all(&shared.directory(id))?;
        highest = names.iter().map(|name| name.last).fold(highest, u64::max);
    }
    Ok(highest)
}

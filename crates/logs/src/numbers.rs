//! Line numbers, assigned in the order of writing and never reused.
//!
//! A file counts how often the store was opened; each opening starts a new range of numbers. So nothing has to be saved
//! for each line, and a number that a reader has stored stays below everything that is written later.

use std::{fs, io};

use crate::segment::Name;
use crate::shared::Shared;
use crate::{missing_is_none, replace};

const FILE: &str = "stretch";
/// The number of bits of a number within a range.
const BITS: u32 = 40;

/// The first number of the next range: no line has this number or a higher one.
pub(crate) fn next(shared: &Shared, highest_seen: u64) -> io::Result<u64> {
    let noted = missing_is_none(fs::read_to_string(shared.root.join(FILE)))?;
    let noted = match noted.map(|text| text.trim().parse::<u64>()) {
        Some(Ok(noted)) => noted,
        // The file is lost: the names of segments show which numbers were used.
        Some(Err(_)) | None => highest_in_segments(shared)? >> BITS,
    };
    Ok((noted.max(highest_seen >> BITS) + 1) << BITS)
}

/// Saves that the range of a number has started.
pub(crate) fn begin(shared: &Shared, first: u64) -> io::Result<()> {
    fs::create_dir_all(&shared.root)?;
    replace(&shared.root.join(FILE), format!("{}\n", first >> BITS).as_bytes())
}

fn highest_in_segments(shared: &Shared) -> io::Result<u64> {
    let mut highest = 0;
    for id in shared.deployments()? {
        let names = Name::list_all(&shared.directory(id))?;
        highest = names.iter().map(|name| name.last).fold(highest, u64::max);
    }
    Ok(highest)
}

//! Extended headers: records with further attributes of the next entry.

use crate::error::Flaw;

/// The records that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

const BROKEN: Flaw = Flaw::Header("its extended header has broken records");

/// Reads records of the form `length key=value`.
pub(super) fn read(mut rest: &[u8]) -> Result<Pax, Flaw> {
    let mut pax = Pax::default();
    while !rest.is_empty() {
        let (key, value, after) = record(rest).ok_or(BROKEN)?;
        rest = after;
        let once = |is_second: bool| match is_second {
            true => Err(Flaw::Ambiguous("its extended header repeats a record")),
            false => Ok(()),
        };
        match key {
            b"path" => once(pax.path.replace(value.to_vec()).is_some())?,
            b"linkpath" => once(pax.link.replace(value.to_vec()).is_some())?,
            b"size" => {
                let size =
                    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(BROKEN)?;
                once(pax.size.replace(size).is_some())?;
            }
            key if key.starts_with(b"GNU.sparse.") || key.starts_with(b"SCHILY.realsize") => {
                return Err(Flaw::Sparse);
            }
            _ => {}
        }
    }
    Ok(pax)
}

/// The first record: its key, its value, and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let digits = &bytes[..space];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let (record, after) = bytes.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let pax =
            read(b"12 path=a/b\n13 linkpath=c\n10 size=7\n30 mtime=1350244992.023960108\n").unwrap_err();
        assert_eq!(pax, BROKEN, "a length that is one too short");
        let pax = read(b"12 path=a/b\n14 linkpath=c\n10 size=7\n30 mtime=1350244992.023960108\n").unwrap();
        assert_eq!(pax, Pax { path: Some(b"a/b".into()), link: Some(b"c".into()), size: Some(7) });
        assert_eq!(read(b""), Ok(Pax::default()));
    }

    #[test]
    fn broken_and_doubtful_records_are_refused() {
        for broken in [
            &b"x"[..],
            b"5 a=b",
            b"99 a=b\n",
            b"0 a=b\n",
            b"3 a\n",
            b"+6 a=b\n",
            b"4 a\n\n",
            b"18446744073709551616 a=b\n",
            b"11 size=-7\n",
        ] {
            assert_eq!(read(broken), Err(BROKEN), "{:?}", String::from_utf8_lossy(broken));
        }
        assert!(matches!(read(b"10 path=a\n10 path=b\n"), Err(Flaw::Ambiguous(_))));
        assert_eq!(read(b"22 GNU.sparse.major=1\n"), Err(Flaw::Sparse));
    }
}

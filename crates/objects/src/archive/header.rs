//! One header of a tar archive: 512 bytes of fixed fields, and extended ones: records with further attributes of the
//! next entry.

use crate::error::Flaw;

/// Everything in a tar archive comes in blocks of this size.
pub(super) const BLOCK: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) size: u64,
    pub(super) kind: u8,
}

impl Header {
    /// The name of an invalid header, for its error.
    pub(super) fn name_of(block: &[u8; BLOCK]) -> &[u8] {
        text(&block[..100])
    }

    pub(super) fn read(block: &[u8; BLOCK]) -> Result<Self, Flaw> {
        let expected = octal(&block[148..156]).ok_or(Flaw::Header("it has no checksum"))?;
        if expected != checksum(block) {
            return Err(Flaw::Header("its checksum is wrong"));
        }
        let size = number(&block[124..136]).ok_or(Flaw::Header("its size is not a number"))?;
        let mut name = text(&block[..100]).to_vec();
        // Only POSIX archives split long names; others keep times in these bytes.
        let prefix = text(&block[345..500]);
        if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        let kind = block[156];
        Ok(Self { name, link: text(&block[157..257]).to_vec(), size, kind })
    }
}

/// The sum of all bytes, with the checksum field taken as spaces.
pub(super) fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..148]) + 8 * u64::from(b' ') + sum(&block[156..])
}

/// A field up to its first zero byte.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A size: octal digits, or binary where they do not suffice.
fn number(field: &[u8]) -> Option<u64> {
    let [first, rest @ ..] = field else { return None };
    match first {
        0x80 => {
            let (high, low) = rest.split_last_chunk::<8>()?;
            high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(*low))
        }
        0x81.. => None,
        _ => octal(field),
    }
}

/// Octal digits, with spaces before and spaces or zero bytes after; none are 0.
fn octal(field: &[u8]) -> Option<u64> {
    let begin = field.iter().position(|byte| *byte != b' ').unwrap_or(field.len());
    let field = &field[begin..];
    let end = field.iter().position(|byte| matches!(byte, b' ' | 0)).unwrap_or(field.len());
    let (digits, after) = field.split_at(end);
    if !after.iter().all(|byte| matches!(byte, b' ' | 0)) {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// The records that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

const BROKEN: Flaw = Flaw::Header("its extended header has broken records");

/// Reads records of the form `length key=value`.
pub(super) fn read_pax(mut rest: &[u8]) -> Result<Pax, Flaw> {
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
    fn numbers_are_octal_or_binary() {
        let table: [(&[u8], Option<u64>); 10] = [
            (b"00000000144\0", Some(100)),
            (b"        144 ", Some(100)),
            (b"144\0\0\0\0\0\0\0\0\0", Some(100)),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", Some(0)),
            (b"777777777777", Some(0o777_777_777_777)),
            (b"00000000148\0", None),
            (b"144 1       ", None),
            (b"-1          ", None),
            (b"\x80\0\0\0\0\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ];
        for (field, expected) in table {
            assert_eq!(number(field), expected, "{field:?}");
        }
        assert_eq!(number(b"\x80\x01\0\0\0\0\0\0\0\0\0\0"), None);
    }

    #[test]
    fn records_are_read() {
        let pax =
            read_pax(b"12 path=a/b\n13 linkpath=c\n10 size=7\n30 mtime=1350244992.023960108\n").unwrap_err();
        assert_eq!(pax, BROKEN, "a length that is one too short");
        let pax =
            read_pax(b"12 path=a/b\n14 linkpath=c\n10 size=7\n30 mtime=1350244992.023960108\n").unwrap();
        assert_eq!(pax, Pax { path: Some(b"a/b".into()), link: Some(b"c".into()), size: Some(7) });
        assert_eq!(read_pax(b""), Ok(Pax::default()));
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
            assert_eq!(read_pax(broken), Err(BROKEN), "{:?}", String::from_utf8_lossy(broken));
        }
        assert!(matches!(read_pax(b"10 path=a\n10 path=b\n"), Err(Flaw::Ambiguous(_))));
        assert_eq!(read_pax(b"22 GNU.sparse.major=1\n"), Err(Flaw::Sparse));
    }
}

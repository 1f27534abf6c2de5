//! One header of a tar archive: 512 bytes of fixed fields.

use crate::error::Flaw;

/// Everything in a tar archive comes in blocks of this size.
pub(super) const BLOCK: usize = 512;

/// A parsed header.
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

    /// Reads a header.
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
}

//! The canonical form of a path: a path that cannot be written in it is refused, so that no path can be read in two
//! ways.

use std::fmt::Write as _;

use crate::refusal::{Refusal, Result};

/// The longest path that is passed on, as it is sent.
const MAX_LENGTH: usize = 4096;
const MAX_SEGMENTS: usize = 32;

/// A path below an environment's own, taken apart and decoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirflowPath {
    segments: Vec<String>,
    is_folder: bool,
}

impl AirflowPath {
    /// Reads what follows `/airflow/{namespace}` in a request: nothing, or a path that begins with a slash.
    pub fn parse(raw: &str) -> Result<Self> {
        if raw.is_empty() || raw == "/" {
            return Ok(Self { segments: Vec::new(), is_folder: true });
        }
        if raw.len() > MAX_LENGTH {
            return Err(refused("it is too long"));
        }
        let Some(rest) = raw.strip_prefix('/') else { return Err(refused("it does not begin with a slash")) };
        let (rest, is_folder) = rest.strip_suffix('/').map_or((rest, false), |rest| (rest, true));
        let segments = rest.split('/').map(segment).collect::<Result<Vec<_>>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err(refused("it has too many segments"));
        }
        Ok(Self { segments, is_folder })
    }

    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let segments = parts.into_iter().map(|part| checked(part.to_owned())).collect::<Result<_>>()?;
        Ok(Self { segments, is_folder: false })
    }

    /// The decoded parts between the slashes.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Whether it ends with a slash.
    pub const fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The path to forward: every special character is escaped.
    pub fn encoded(&self) -> String {
        let mut text = String::with_capacity(64);
        for segment in &self.segments {
            text.push('/');
            for byte in segment.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~:@+,=".contains(&byte) {
                    text.push(char::from(byte));
                } else {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
        }
        if self.is_folder {
            text.push('/');
        }
        text
    }
}

fn segment(raw: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, left) = match first {
            b'%' => (escape(after)?, &after[2..]),
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = left;
    }
    checked(String::from_utf8(bytes).map_err(|_| refused("it contains bytes that are not UTF-8"))?)
}

fn checked(text: String) -> Result<String> {
    match text.as_str() {
        "" => Err(refused("it has an empty segment")),
        "." | ".." => Err(refused("it goes up")),
        // Each of these is a separator or an escape to some server behind the front door, literally or escaped.
        text if text.contains(['/', '\\', ';', '%', '?', '#']) => {
            Err(refused("a segment contains one of / \\ ; % ? #"))
        }
        text if text.chars().any(char::is_control) => Err(refused("it contains control characters")),
        _ => Ok(text),
    }
}

/// The byte that two hexadecimal digits stand for.
fn escape(digits: &[u8]) -> Result<u8> {
    let digit = |at: usize| digits.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    match (digit(0), digit(1)) {
        // Two digits make a byte.
        (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
        _ => Err(refused("it contains a % without two hexadecimal digits")),
    }
}

fn refused(why: &str) -> Refusal {
    Refusal::invalid(format!(
        "This path cannot be forwarded to the environment: {why}. Send it in its canonical form."
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_paths_are_read_and_written_the_same() {
        for path in
            ["/", "/api/v2/dags", "/dags/", "/api/v2/dags/a.b-c_d/dagRuns/manual__2027-01-15T08:00:00+00:00"]
        {
            assert_eq!(AirflowPath::parse(path).unwrap().encoded(), path);
        }
        let escaped = AirflowPath::parse("/api/v2/pools/my%20p%C3%BCl%2Bx").unwrap();
        assert_eq!(escaped.segments(), ["api", "v2", "pools", "my pül+x"]);
        assert_eq!(escaped.encoded(), "/api/v2/pools/my%20p%C3%BCl+x");
        assert_eq!(AirflowPath::parse("/%61pi").unwrap().encoded(), "/api");
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        let ambiguous = "api // //api /api//v2 /api/.. /api/../v2 /./api /api/%2e%2e/x /api/%2E/x /a%2Fb /a%2fb \
            /a%5Cb /a\\b /a;b=c /a%3Bb /%252e%252e/ /a% /a%2 /a%zz /a%00 /a%0d%0a /%ff%fe /a%3Fb /a%23b \
            /%c0%ae%c0%ae/x";
        for path in ambiguous.split(' ') {
            assert_eq!(AirflowPath::parse(path).map_err(|refusal| refusal.status()), Err(400), "{path}");
        }
        assert!(AirflowPath::parse(&format!("/{}", "a".repeat(MAX_LENGTH))).is_err());
        assert!(AirflowPath::parse(&"/a".repeat(MAX_SEGMENTS + 1)).is_err());
    }

    proptest! {
        /// Whatever is let in is one path only: written out and read again it is the same, and no part can escape.
        #[test]
        fn the_form_is_canonical(raw in "(/|%2[eEfF]|%5[cC]|%25|;|\\.|[a-z~]|%[0-9a-f]{2}|\\PC){0,24}") {
            if let Ok(path) = AirflowPath::parse(&format!("/{raw}")) {
                let written = path.encoded();
                prop_assert_eq!(&AirflowPath::parse(&written).unwrap(), &path);
                prop_assert!(written.is_ascii());
                prop_assert!(!written.contains("//") && !written.contains("/../") && !written.contains("/./"));
                let lower = written.to_ascii_lowercase();
                for hidden in ["%2f", "%5c", "%25", "%2e", "%3b", "%00"] {
                    prop_assert!(!lower.contains(hidden), "{}", written);
                }
            }
        }
    }
}

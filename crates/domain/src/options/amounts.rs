//! CPU and memory as people write them: `0.25`, `1`, `0.5Gi`.
//!
//! Stored as whole thousandths, so that comparing and doubling are exact.

use std::fmt;

const ONE: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory(u64);

impl Cpu {
    /// So many thousandths of a processor.
    pub const fn from_thousandths(thousandths: u64) -> Self {
        Self(thousandths)
    }

    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Reads `0.25` or `1`.
    pub fn parse(text: &str) -> Option<Self> {
        thousandths(text).map(Self)
    }

    /// The memory that goes with it: numerically twice as much.
    pub const fn memory(self) -> Memory {
        Memory(self.0.saturating_mul(2))
    }
}

impl Memory {
    /// So many thousandths of a gibibyte.
    pub const fn from_thousandths(thousandths: u64) -> Self {
        Self(thousandths)
    }

    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Reads `0.5Gi` or `2Gi`.
    pub fn parse(text: &str) -> Option<Self> {
        thousandths(text.strip_suffix("Gi")?).map(Self)
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, f)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, f)?;
        f.write_str("Gi")
    }
}

/// Digits, at most three of them behind a point.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = match text.split_once('.') {
        Some((whole, part)) if !part.is_empty() => (whole, part),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 3 || !digits(whole) || !digits(part) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.checked_mul(ONE)?.checked_add(part)
}

fn write(thousandths: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (whole, part) = (thousandths / ONE, thousandths % ONE);
    if part == 0 {
        return write!(f, "{whole}");
    }
    write!(f, "{whole}.{}", format!("{part:03}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_the_way_people_do() {
        for (text, written) in
            [("0.25", "0.25"), ("1", "1"), ("1.0", "1"), ("0.375", "0.375"), ("010", "10"), ("0.100", "0.1")]
        {
            assert_eq!(Cpu::parse(text).unwrap().to_string(), written, "{text}");
            let memory = Memory::parse(&format!("{text}Gi")).unwrap();
            assert_eq!(memory.to_string(), format!("{written}Gi"), "{text}");
        }
        for text in ["", ".", "1.", ".5", "0.0001", "-1", "+1", "1e3", "1 ", "one", "99999999999999999999"] {
            assert_eq!(Cpu::parse(text), None, "{text}");
            assert_eq!(Memory::parse(&format!("{text}Gi")), None, "{text}");
        }
        for text in ["1", "1G", "1gi", "512Mi", "1 Gi"] {
            assert_eq!(Memory::parse(text), None, "{text}");
        }
    }

    #[test]
    fn memory_goes_with_processors() {
        assert_eq!(Cpu::parse("0.25").unwrap().memory(), Memory::parse("0.5Gi").unwrap());
        assert!(Cpu::parse("0.25") < Cpu::parse("1"));
    }
}

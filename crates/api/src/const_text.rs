//! String comparisons in constant expressions, where `==` is not available.

/// Whether two texts are the same.
pub const fn same(left: &str, right: &str) -> bool {
    left.len() == right.len() && starts_with(left, right)
}

/// Whether a text begins with another.
pub const fn starts_with(text: &str, beginning: &str) -> bool {
    let (text, beginning) = (text.as_bytes(), beginning.as_bytes());
    if text.len() < beginning.len() {
        return false;
    }
    let mut index = 0;
    while index < beginning.len() {
        if text[index] != beginning[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Whether a text is in a list.
pub const fn contains(list: &[&str], text: &str) -> bool {
    index_in(list, text).is_some()
}

/// Where a text is in a list.
pub const fn index_in(list: &[&str], text: &str) -> Option<usize> {
    let mut index = 0;
    while index < list.len() {
        if same(list[index], text) {
            return Some(index);
        }
        index += 1;
    }
    None
}

/// Where a byte is in a text.
pub const fn position(text: &str, byte: u8) -> Option<usize> {
    let mut index = 0;
    while index < text.len() {
        if text.as_bytes()[index] == byte {
            return Some(index);
        }
        index += 1;
    }
    None
}

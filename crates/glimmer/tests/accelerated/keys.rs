//! The keys of the hammer, and the numbers in their values.

pub const KEYS: usize = 8;
/// The items of this key expire, at a time that no reply tells.
pub const MORTAL: usize = KEYS - 1;
/// The value of this key is a number that grows.
pub const UP: usize = KEYS - 2;
/// The value of this key is a number that shrinks, from [`TOP`] on. It always has as many digits.
pub const DOWN: usize = KEYS - 3;
/// See [`DOWN`].
pub const TOP: u64 = 1_999_999_999;

pub fn name(key: usize) -> String {
    format!("hot:{key}")
}

/// Whether clients count with a key.
pub fn counts(key: usize) -> bool {
    key == UP || key == DOWN
}

/// A value with this number.
pub fn value(key: usize, number: u64, rest: usize) -> String {
    match key {
        UP => number.to_string(),
        DOWN => (TOP - number).to_string(),
        _ => format!("{number}:{}", "x".repeat(rest)),
    }
}

/// The number of a value: the highest of its fields.
pub fn number(key: usize, value: &[u8]) -> u64 {
    let fields = value.split(|&byte| byte == b':');
    let numbers = fields.filter_map(|field| str::from_utf8(field).ok()?.parse().ok());
    let number = numbers.max().unwrap_or_else(|| panic!("{value:?}"));
    if key == DOWN { TOP - number } else { number }
}

/// The value in a reply to a text request, or to a binary one.
pub fn value_of(is_binary: bool, name: &str, reply: &[u8]) -> Option<Vec<u8>> {
    if is_binary {
        let status = u16::from_be_bytes([reply[6], reply[7]]);
        return (status == 0).then(|| reply[28..].to_vec());
    }
    if reply == b"END\r\n" {
        return None;
    }
    let text = str::from_utf8(reply).unwrap();
    let (line, rest) = text.split_once("\r\n").unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[..3], ["VALUE", name, "0"], "{text}");
    let value = rest.strip_suffix("\r\nEND\r\n").unwrap();
    assert_eq!(words[3], value.len().to_string(), "{text}");
    assert!(
        value
            .bytes()
            .all(|byte| byte == b':' || byte == b'x' || byte.is_ascii_digit())
    );
    Some(value.into())
}

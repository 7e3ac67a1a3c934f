//! Replies that need no store.

use glimmer_loadgen::workload::{Key, value};

/// The replies to reads.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// Length of every value in bytes.
    pub value_bytes: usize,
}

impl Answers {
    /// Answers the request at the start of `input` and returns its length, if it is complete.
    #[inline]
    pub fn request(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let line_end = memchr::memchr(b'\n', input)?;
        let line = input[..line_end].strip_suffix(b"\r")?;
        if let Some(keys) = line.strip_prefix(b"get ") {
            keys.split(|&byte| byte == b' ')
                .for_each(|key| self.value(key, out));
            out.extend_from_slice(b"END\r\n");
            return Some(line_end + 1);
        }
        let length = line
            .strip_prefix(b"set ")?
            .rsplit(|&byte| byte == b' ')
            .next()?;
        let value_bytes: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
        let bytes = line_end + 1 + value_bytes + 2;
        if input.len() < bytes {
            return None;
        }
        out.extend_from_slice(b"STORED\r\n");
        Some(bytes)
    }

    #[inline]
    fn value(&self, key: &[u8], out: &mut Vec<u8>) {
        let Some(number) = Key::parse(key).map(Key::number) else {
            return;
        };
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(key);
        out.extend_from_slice(b" 0 ");
        out.extend_from_slice(itoa::Buffer::new().format(self.value_bytes).as_bytes());
        out.extend_from_slice(b"\r\n");
        value::append(out, self.value_bytes, number, 0);
        out.extend_from_slice(b"\r\n");
    }
}

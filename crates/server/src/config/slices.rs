//! How much of a large value has its turn at a time (`--slice-bytes`).

use glimmer_base::limits;
use glimmer_notation as notation;
use std::fmt;
use std::str::FromStr;

/// Fewest bytes of `--slice-bytes`: smaller slices would be of replies that count as small ones.
pub const SLICE_BYTES_MIN: usize = limits::LARGE_REPLY_BYTES;

/// Bytes of a large value that a worker sends or receives before others have their turn: what
/// [`Config::slice_bytes`](super::Config::slice_bytes) has, as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceBytes(pub usize);

impl SliceBytes {
    /// Values are handled whole.
    pub const OFF: SliceBytes = SliceBytes(usize::MAX);
}

impl fmt::Display for SliceBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SliceBytes::OFF => out.write_str("off"),
            SliceBytes(bytes) => bytes.fmt(out),
        }
    }
}

impl FromStr for SliceBytes {
    type Err = String;

    fn from_str(text: &str) -> Result<SliceBytes, String> {
        if text == "off" {
            return Ok(SliceBytes::OFF);
        }
        let range = SLICE_BYTES_MIN..=limits::ITEM_BYTES_MAX;
        let bytes = notation::bytes(text).ok();
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let fitting = bytes.filter(|bytes| range.contains(bytes));
        fitting.map(SliceBytes).ok_or_else(|| {
            let (least, most) = (range.start() >> 10, range.end() >> 20);
            format!("off for whole values, or a length from {least}k to {most}m")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_are_written() {
        for (text, bytes, written) in [
            ("off", usize::MAX, "off"),
            ("16k", SLICE_BYTES_MIN, "16384"),
            ("65536", limits::SLICE_BYTES, "65536"),
            ("1g", limits::ITEM_BYTES_MAX, "1073741824"),
        ] {
            let read: SliceBytes = text.parse().unwrap();
            assert_eq!(read, SliceBytes(bytes), "{text}");
            assert_eq!(read.to_string(), written);
            assert_eq!(written.parse(), Ok(read));
        }
        for wrong in ["0", "16383", "1025m", "-1", "on", "OFF", "64kb", ""] {
            let error = wrong.parse::<SliceBytes>().unwrap_err();
            let expected = "off for whole values, or a length from 16k to 1024m";
            assert_eq!(error, expected, "{wrong}");
        }
    }
}

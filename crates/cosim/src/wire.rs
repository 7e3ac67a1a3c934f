//! Frames as beats, on their way into the circuit and out of it.

use std::collections::VecDeque;

/// Up to eight bytes of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beat {
    /// The first byte in the lowest bits.
    pub data: u64,
    /// One bit for each byte that counts.
    pub keep: u64,
    /// Whether it is the frame's last beat.
    pub last: bool,
}

/// Frames into the circuit.
#[derive(Debug, Default)]
pub struct Incoming {
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the first frame that were taken.
    at: usize,
}

impl Incoming {
    /// Frames that were not taken in full.
    pub fn waiting(&self) -> usize {
        self.frames.len()
    }

    /// Adds a frame.
    pub fn push(&mut self, frame: Vec<u8>) {
        if !frame.is_empty() {
            self.frames.push_back(frame);
        }
    }

    /// The next beat of this many bytes.
    pub fn offer(&self, width: usize) -> Option<Beat> {
        let rest = &self.frames.front()?[self.at..];
        let here = &rest[..rest.len().min(width)];
        let mut word = [0; 8];
        word[..here.len()].copy_from_slice(here);
        Some(Beat {
            data: u64::from_le_bytes(word),
            keep: (1 << here.len()) - 1,
            last: rest.len() <= width,
        })
    }

    /// The beat was taken.
    pub fn taken(&mut self, width: usize) {
        self.at += width;
        if self
            .frames
            .front()
            .is_some_and(|frame| self.at >= frame.len())
        {
            self.frames.pop_front();
            self.at = 0;
        }
    }
}

/// Frames out of the circuit.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Those that are complete.
    pub frames: VecDeque<Vec<u8>>,
    partial: Vec<u8>,
}

impl Outgoing {
    /// Takes a beat.
    pub fn take(&mut self, data: u64, keep: u64, is_last: bool) {
        let bytes = keep.trailing_ones() as usize;
        self.partial.extend(&data.to_le_bytes()[..bytes]);
        if is_last {
            self.frames.push_back(std::mem::take(&mut self.partial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_same_after_its_way_as_beats() {
        for width in [1, 8] {
            for bytes in 1..40_u8 {
                let frame: Vec<u8> = (0..bytes).collect();
                let (mut to, mut from) = (Incoming::default(), Outgoing::default());
                to.push(frame.clone());
                while let Some(beat) = to.offer(width) {
                    from.take(beat.data, beat.keep, beat.last);
                    to.taken(width);
                }
                assert_eq!(from.frames, [frame]);
            }
        }
    }
}

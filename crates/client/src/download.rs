//! The reply to a read that is longer than a datagram, while its fragments arrive.

use glimmer_base::limits::NATIVE_RESTARTS_MAX;
use glimmer_proto::native::Fragment;
use glimmer_proto::native::fragment::{Assembly, DATA_BYTES, Joined, WINDOW};

/// A reply of which a part has arrived.
///
/// The value may change meanwhile. Then fragments of another message arrive, and the reply begins
/// again with them: once for each copy of the request that was sent, since one copy is answered
/// with fragments of one message, and [`NATIVE_RESTARTS_MAX`] times at most. So fragments that are
/// late, forged or made up do not make the client begin again as often as their sender likes.
pub struct Download {
    assembly: Assembly,
    /// A copy of the request has been sent since it began.
    is_asked_again: bool,
    restarts: u32,
}

/// What a fragment comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: it has arrived before, is too far ahead, or belongs to another message.
    None,
    /// More of the message is there.
    More {
        /// The fragments of a window are there, and the next window has to be asked for.
        is_window: bool,
    },
    /// All of the message is there.
    Complete,
    /// The server has sent too many messages that are not what it has announced.
    Hopeless,
}

impl Download {
    /// A reply of which this fragment arrives first.
    pub fn new(fragment: &Fragment<'_>) -> Download {
        Download {
            assembly: Assembly::new(fragment),
            // The first fragment may answer any copy.
            is_asked_again: true,
            restarts: 0,
        }
    }

    /// Another copy of the request is sent.
    pub fn note_copy(&mut self) {
        self.is_asked_again = true;
    }

    /// The position of the first missing byte.
    pub fn next(&self) -> u32 {
        self.assembly.next()
    }

    /// The bytes that have arrived without a gap.
    pub fn bytes(&self) -> &[u8] {
        self.assembly.bytes()
    }

    /// Adds a fragment.
    pub fn join(&mut self, fragment: &Fragment<'_>) -> Progress {
        let mut before = self.assembly.next();
        let joined = match self.assembly.join(fragment) {
            Joined::Foreign if self.may_restart() => {
                self.is_asked_again = false;
                self.assembly = Assembly::new(fragment);
                before = 0;
                self.assembly.join(fragment)
            }
            joined => joined,
        };
        match joined {
            Joined::Complete => Progress::Complete,
            Joined::More => {
                let next = self.assembly.next();
                let is_end = (next as usize).is_multiple_of(WINDOW * DATA_BYTES);
                Progress::More {
                    is_window: next > before && is_end,
                }
            }
            Joined::Corrupt if self.count_restart() => Progress::None,
            Joined::Corrupt => Progress::Hopeless,
            Joined::OutOfOrder | Joined::Foreign => Progress::None,
        }
    }

    fn may_restart(&mut self) -> bool {
        self.is_asked_again && self.count_restart()
    }

    /// Counts a new beginning. Says whether it is still allowed.
    fn count_restart(&mut self) -> bool {
        self.restarts += 1;
        self.restarts <= NATIVE_RESTARTS_MAX
    }
}

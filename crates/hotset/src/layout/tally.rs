//! What readers count.

/// Declares the tallies with the names that statistics show.
macro_rules! tallies {
    ($($(#[$doc:meta])* $name:ident = $shown:literal,)+) => {
        /// An event that a reader counts. The number is its place in the reader's row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum Tally {
            $($(#[$doc])* $name,)+
        }

        /// All events in the order of their places.
        pub const ALL: &[Tally] = &[$(Tally::$name,)+];

        impl Tally {
            /// Every event, in the order of the places.
            pub fn all() -> &'static [Tally] {
                ALL
            }

            /// The name in statistics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Tally::$name => $shown,)+
                }
            }
        }
    };
}

tallies! {
    /// A text `get` was answered.
    HitGet = "hits_get",
    /// A text `gets` was answered.
    HitGets = "hits_gets",
    /// A binary GET, GETQ, GETK or GETKQ was answered.
    HitBinary = "hits_binary",
    /// The key is in no slot that may be read.
    Miss = "misses",
    /// The slot changed while its item was being copied.
    Torn = "torn",
    /// The item has expired.
    Expired = "expired",
    /// The slot was filled before a flush, or a delayed flush is due.
    Flushed = "flushed",
    /// The accelerator is paused.
    Paused = "passed_paused",
    /// The frame is not a datagram to the server's address and port.
    Foreign = "passed_foreign",
    /// The frame's lengths do not agree, it has options or fragments, or a checksum is wrong.
    Malformed = "passed_malformed",
    /// The source may not be answered.
    Source = "passed_source",
    /// The datagram is not a lone request that the accelerator answers.
    Request = "passed_request",
    /// The reply is longer than one datagram may be, or the packet cannot grow that far.
    TooLong = "passed_too_long",
}

/// Words of a reader's row of tallies: a whole number of cache lines, so that readers on different
/// cores do not share one.
pub const TALLIES: usize = 16;

const _: () = assert!(ALL.len() <= TALLIES);
const _: () = assert!((TALLIES * 8).is_multiple_of(64));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_list() {
        for (place, tally) in Tally::all().iter().enumerate() {
            assert_eq!(*tally as usize, place);
        }
    }
}

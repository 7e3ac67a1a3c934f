//! Keeps the same line from filling the log: of the lines of one place in the code, a bounded
//! number is written in [`LOG_WINDOW_S`]; the others are counted, and the number is logged
//! afterwards.
//!
//! Workers log, so nothing here waits, but for the moment in which another thread enters a place.
//! Counts of two threads that meet at the end of a window may be off by a few lines.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use glimmer_base::limits::{LOG_PLACES_MAX, LOG_REPEATS_MAX, LOG_WINDOW_S};
use tracing::Metadata;
use tracing::callsite::Identifier;

/// The lines of every place in the code, of late.
pub(super) struct Repeats {
    places: [Place; LOG_PLACES_MAX],
}

/// A place in the code that logs.
#[derive(Default)]
struct Place {
    /// Which one, and its target, unless this is free.
    name: OnceLock<(Identifier, String)>,
    /// The window that is counted, and its lines so far.
    window: AtomicU64,
    lines: AtomicU32,
    /// Lines left out, and not told yet.
    left_out: AtomicU64,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            places: std::array::from_fn(|_| Place::default()),
        }
    }
}

impl Repeats {
    /// Whether another line of this place may be written at this time.
    pub fn admits(&self, metadata: &Metadata<'_>, now_s: u64) -> bool {
        // Without room to count them, lines are written.
        self.place(metadata).is_none_or(|place| place.admits(now_s))
    }

    fn place(&self, metadata: &Metadata<'_>) -> Option<&Place> {
        let name = || (metadata.callsite(), metadata.target().to_owned());
        let is_its = |place: &&Place| place.name.get_or_init(name).0 == metadata.callsite();
        self.places.iter().find(is_its)
    }

    /// Calls `tell` with the name of each place whose lines were left out, and their number.
    pub fn tell(&self, mut tell: impl FnMut(&str, u64)) {
        let entered = self
            .places
            .iter()
            .map_while(|place| Some((place.name.get()?, place)));
        for ((_, target), place) in entered {
            let left_out = place.left_out.swap(0, Relaxed);
            if left_out > 0 {
                tell(target, left_out);
            }
        }
    }
}

impl Place {
    fn admits(&self, now_s: u64) -> bool {
        let window = now_s / LOG_WINDOW_S;
        if self.window.swap(window, Relaxed) != window {
            self.lines.store(0, Relaxed);
        }
        if self.lines.load(Relaxed) < LOG_REPEATS_MAX {
            self.lines.fetch_add(1, Relaxed);
            return true;
        }
        self.left_out.fetch_add(1, Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::callsite::Callsite;
    use tracing::field::FieldSet;
    use tracing::metadata::Kind;
    use tracing::{Level, subscriber::Interest};

    /// A place of its own.
    struct Here(#[expect(dead_code, reason = "places differ by their addresses")] u8);

    impl Callsite for Here {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("nobody asks the place")
        }
    }

    const fn line(target: &'static str, here: &'static Here) -> Metadata<'static> {
        let fields = FieldSet::new(&[], Identifier(here));
        Metadata::new(
            "line",
            target,
            Level::WARN,
            None,
            None,
            None,
            fields,
            Kind::EVENT,
        )
    }

    static PLACES: [Here; 2] = [Here(1), Here(2)];
    static FIRST: Metadata<'static> = line("first", &PLACES[0]);
    static SECOND: Metadata<'static> = line("second", &PLACES[1]);

    #[test]
    fn lines_beyond_the_limit_are_left_out_and_told_once() {
        let repeats = Repeats::default();
        let lines = LOG_REPEATS_MAX + 7;
        let admitted = (0..lines).filter(|_| repeats.admits(&FIRST, 3));
        assert_eq!(admitted.count() as u32, LOG_REPEATS_MAX);
        assert!(
            repeats.admits(&SECOND, 3),
            "another place has lines of its own"
        );
        let told = || {
            let mut told = Vec::new();
            repeats.tell(|place, lines| told.push((place.to_owned(), lines)));
            told
        };
        assert_eq!(told(), [("first".to_owned(), 7)]);
        assert_eq!(told(), []);
        assert!(repeats.admits(&FIRST, 3 + LOG_WINDOW_S), "a window later");
        assert_eq!(told(), []);
    }
}

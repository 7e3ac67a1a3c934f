//! Lines about events, from those who see the events to those who watch them.
//!
//! | file | idea |
//! | --- | --- |
//! | `feed` | the unsent lines of one watcher, up to a limit |
//! | `missed` | how many events of each kind nobody was shown |
//!
//! **A watcher that does not read costs one count per event.** Its feed is *full* once a line did
//! not fit, until its worker takes all lines. While everybody who is interested in an event is
//! full, the event is counted: it gets no number, no time and no line, and no lock is taken.
//!
//! **No event is lost in silence.** Every interested watcher is shown each event, or told of it in
//! a note of the lines that were left out. An event that somebody has room for is put into each
//! feed, or counted by those that are full. An event that is counted in `missed` has been left out
//! for everybody who is interested, whether full or not. Who takes the lines of a feed says that
//! there is room again, passes a SeqCst fence and then reads `missed`. Who counts passes a SeqCst
//! fence after that, and then looks whether somebody has room. If the reader's fence comes first,
//! the counter sees that there is room, and has the worker of the feed look again. If the
//! counter's comes first, the reader sees the count.
//!
//! `tests/loom_feeds.rs` shows this; it fails without either fence or without the second look
//! (`weakenings.txt`).

mod feed;
mod missed;

use glimmer_base::sync::{Arc, AtomicU32, AtomicU64, Mutex, Ordering, fence, lock, weakened};

pub use feed::Feed;
use feed::Put;
use missed::Missed;

/// Counters of reported events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchFigures {
    /// State: watchers.
    pub watchers: u64,
    /// Events that a watcher may have been interested in.
    pub written: u64,
    /// Lines sent to watchers.
    pub sent: u64,
    /// Lines left out because watchers were too slow.
    pub skipped: u64,
}

/// The feeds of all watchers.
pub struct Feeds {
    /// The interests of the watchers that have room.
    open: AtomicU32,
    missed: Missed,
    list: Mutex<Vec<Arc<Feed>>>,
    /// Bytes of unsent lines of one watcher.
    bytes_max: usize,
    /// Events of which lines were made.
    written: AtomicU64,
    sent: AtomicU64,
    /// Lines left out for watchers that are gone.
    gone_skipped: AtomicU64,
}

impl Feeds {
    /// No watchers. Each may have this many bytes of unsent lines.
    pub fn new(bytes_max: usize) -> Feeds {
        Feeds {
            open: AtomicU32::new(0),
            missed: Missed::default(),
            list: Mutex::default(),
            bytes_max,
            written: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            gone_skipped: AtomicU64::new(0),
        }
    }

    /// Whether a watcher with one of these interests has room, as far as the caller can see.
    #[inline]
    pub fn has_room(&self, interests: u32) -> bool {
        self.open.load(Ordering::Relaxed) & interests != 0
    }

    /// Counts events of one kind of which nobody is shown a line. [`Feeds::look_again`] follows.
    #[inline]
    pub fn miss(&self, interest: u32, count: u64) {
        self.missed.add(interest, count);
    }

    /// Events with these interests have been counted: if somebody has room by now, who is to be
    /// told of them, `tell` is called with the worker of each.
    #[inline]
    pub fn look_again(&self, interests: u32, tell: impl Fn(usize)) {
        if !weakened("missed_fence") {
            fence(Ordering::SeqCst);
        }
        if self.has_room(interests) && !weakened("missed_recheck") {
            self.tell_open(interests, tell);
        }
    }

    #[cold]
    fn tell_open(&self, interests: u32, tell: impl Fn(usize)) {
        for feed in lock(&self.list).iter() {
            if feed.interests() & interests != 0 && !feed.is_full() {
                tell(feed.worker());
            }
        }
    }

    /// Puts a line about an event into the feeds with this interest. Calls `tell` with the worker
    /// of each that has something to take.
    pub fn put(&self, interest: u32, line: &[u8], tell: impl Fn(usize)) {
        self.written.fetch_add(1, Ordering::Relaxed);
        let (mut sent, mut has_filled) = (0, false);
        let list = lock(&self.list);
        for feed in list.iter().filter(|feed| feed.interests() & interest != 0) {
            match feed.put(line, self.bytes_max) {
                Put::Kept => sent += 1,
                Put::Filled => has_filled = true,
                Put::LeftOut => continue,
            }
            tell(feed.worker());
        }
        if has_filled {
            self.note_open(&list);
        }
        self.sent.fetch_add(sent, Ordering::Relaxed);
    }

    /// Notes who has room. The caller holds the lock of the list.
    fn note_open(&self, list: &[Arc<Feed>]) {
        let open = list.iter().filter(|feed| !feed.is_full());
        let interests = open.fold(0, |sum, feed| sum | feed.interests());
        self.open.store(interests, Ordering::Relaxed);
        if !weakened("room_fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Adds a watcher with a connection of this worker, unless there are as many as there may be.
    /// `note` is called with the interests of all, while no other watcher comes or goes.
    pub fn add(
        &self,
        (worker, interests): (usize, u32),
        watchers_max: usize,
        note: impl FnOnce(u32),
    ) -> Option<Arc<Feed>> {
        let mut list = lock(&self.list);
        if list.len() >= watchers_max {
            return None;
        }
        let feed = Arc::new(Feed::new(worker, interests));
        list.push(feed.clone());
        note(interests_of(&list));
        self.note_open(&list);
        feed.begin(self.missed.sum(interests));
        Some(feed)
    }

    /// Removes a watcher. `note` is called as by [`Feeds::add`].
    pub fn remove(&self, feed: &Arc<Feed>, note: impl FnOnce(u32)) {
        let mut list = lock(&self.list);
        list.retain(|other| !Arc::ptr_eq(other, feed));
        note(interests_of(&list));
        self.note_open(&list);
        let skipped = feed.skipped(self.missed.sum(feed.interests()));
        self.gone_skipped.fetch_add(skipped, Ordering::Relaxed);
    }

    /// Calls `note` with the interests of all watchers, while no watcher comes or goes.
    pub fn with_interests(&self, note: impl FnOnce(u32)) {
        note(interests_of(&lock(&self.list)));
    }

    /// Moves all lines of a feed to the end of `out`, with what `note` makes of the number of those
    /// that were left out since the last one. The feed has room again.
    pub fn take(&self, feed: &Feed, out: &mut Vec<u8>, note: impl FnOnce(u64) -> String) {
        feed.take_lines(out);
        if feed.is_full() {
            let list = lock(&self.list);
            feed.open();
            self.note_open(&list);
        }
        let skipped = feed.take_skipped(self.missed.sum(feed.interests()));
        if skipped > 0 && !weakened("skipped_not_told") {
            out.extend_from_slice(note(skipped).as_bytes());
        }
    }

    /// Counters of reported events.
    pub fn figures(&self) -> WatchFigures {
        let list = lock(&self.list);
        let skipped = (list.iter()).map(|feed| feed.skipped(self.missed.sum(feed.interests())));
        WatchFigures {
            watchers: list.len() as u64,
            written: self.written.load(Ordering::Relaxed) + self.missed.sum(u32::MAX),
            sent: self.sent.load(Ordering::Relaxed),
            skipped: skipped.sum::<u64>() + self.gone_skipped.load(Ordering::Relaxed),
        }
    }
}

fn interests_of(list: &[Arc<Feed>]) -> u32 {
    list.iter().fold(0, |sum, feed| sum | feed.interests())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    const GETS: u32 = 1;
    const SETS: u32 = 2;
    const BYTES_MAX: usize = 10_000;

    fn add(feeds: &Feeds, interests: u32) -> Arc<Feed> {
        feeds.add((0, interests), 9, |_| {}).unwrap()
    }

    /// An event, as those who see one treat it. Returns whether a line was made for it.
    fn report(feeds: &Feeds, interest: u32) -> bool {
        if feeds.has_room(interest) {
            feeds.put(interest, &[b'x'; 1000], |_| {});
            return true;
        }
        feeds.miss(interest, 1);
        feeds.look_again(interest, |_| panic!("nobody has room"));
        false
    }

    fn take(feeds: &Feeds, feed: &Feed) -> (usize, String) {
        let mut out = Vec::new();
        feeds.take(feed, &mut out, |lines| format!("skipped={lines}\n"));
        let text = String::from_utf8(out).unwrap();
        let note = text.trim_start_matches('x');
        (text.len() - note.len(), note.to_owned())
    }

    #[test]
    fn a_full_feed_counts_and_does_nothing_else() {
        let feeds = Feeds::new(BYTES_MAX);
        let feed = add(&feeds, GETS);
        let lines = (0..100).filter(|_| report(&feeds, GETS)).count();
        assert_eq!(lines, BYTES_MAX / 1000 + 1, "the last one did not fit");
        assert_eq!(take(&feeds, &feed), (BYTES_MAX, "skipped=90\n".into()));
        assert!(report(&feeds, GETS), "there is room again");
        assert_eq!(take(&feeds, &feed), (1000, String::new()));
        let figures = WatchFigures {
            watchers: 1,
            written: 101,
            sent: 11,
            skipped: 90,
        };
        assert_eq!(feeds.figures(), figures);
        feeds.remove(&feed, |interests| assert_eq!(interests, 0));
        let watchers = 0;
        assert_eq!(
            feeds.figures(),
            WatchFigures {
                watchers,
                ..figures
            }
        );
    }

    /// Each is told of what it has missed itself, and of nothing before it came.
    #[test]
    fn full_feeds_and_open_ones_count_apart() {
        let feeds = Feeds::new(BYTES_MAX);
        let (both, gets) = (add(&feeds, GETS | SETS), add(&feeds, GETS));
        (0..5).for_each(|_| assert!(report(&feeds, SETS)));
        for _ in 0..20 {
            report(&feeds, GETS);
        }
        assert!(!report(&feeds, SETS));
        assert!(!report(&feeds, GETS));
        let late = add(&feeds, SETS);
        assert!(report(&feeds, SETS) && !report(&feeds, GETS));
        // 26 events before, of which 10 fitted, then a set and a get.
        assert_eq!(take(&feeds, &both), (10_000, "skipped=19\n".into()));
        assert_eq!(take(&feeds, &gets), (10_000, "skipped=12\n".into()));
        assert_eq!(take(&feeds, &late), (1000, String::new()));
        assert_eq!(take(&feeds, &both), (0, String::new()), "it is told once");
    }

    #[test]
    fn who_has_room_is_told_of_what_was_counted_meanwhile() {
        let feeds = Feeds::new(BYTES_MAX);
        let feed = add(&feeds, GETS);
        let told = Cell::new(0);
        feeds.miss(GETS, 7);
        feeds.look_again(GETS, |worker| told.set(told.get() + worker + 1));
        assert_eq!(told.get(), 1);
        assert_eq!(take(&feeds, &feed), (0, "skipped=7\n".into()));
    }

    #[test]
    fn a_line_that_never_fits_is_left_out_and_its_watcher_told() {
        let feeds = Feeds::new(100);
        let feed = add(&feeds, GETS);
        let told = Cell::new(0);
        for _ in 0..3 {
            feeds.put(GETS, &[b'x'; 1000], |_| told.set(told.get() + 1));
        }
        assert_eq!(told.get(), 1, "its worker looks once");
        assert_eq!(take(&feeds, &feed), (0, "skipped=3\n".into()));
    }
}

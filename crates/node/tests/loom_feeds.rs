//! Events beside a watcher that takes its lines, under the model checker.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_node::feeds::Feeds;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

const INTEREST: u32 = 1;
const LINE: &[u8] = b"0123456789";
const EVENTS: u64 = 2;

/// Reports an event to the feeds, as the observer of the engines does.
fn report(feeds: &Feeds, is_pending: &AtomicBool) {
    let tell = |_| is_pending.store(true, Ordering::Relaxed);
    if feeds.has_room(INTEREST) {
        feeds.put(INTEREST, LINE, tell);
    } else {
        feeds.miss(INTEREST, 1);
        feeds.look_again(INTEREST, tell);
    }
}

/// The events that these bytes tell of.
fn told(bytes: &[u8]) -> u64 {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.matches(std::str::from_utf8(LINE).unwrap()).count() as u64;
    let notes = text.split("skipped=").skip(1);
    lines
        + notes
            .map(|rest| rest.split('\n').next().unwrap().parse::<u64>().unwrap())
            .sum::<u64>()
}

/// The watcher is shown each event, or told that it was left out, although nothing happens after
/// the last one.
#[test]
fn no_event_is_lost_in_silence() {
    explore(3, || {
        let feeds = Arc::new(Feeds::new(LINE.len()));
        let is_pending = Arc::new(AtomicBool::new(false));
        let feed = feeds.add((0, INTEREST), 1, |_| {}).unwrap();
        // The second one does not fit: the feed is full.
        report(&feeds, &is_pending);
        report(&feeds, &is_pending);
        let others = (feeds.clone(), is_pending.clone());
        let publisher = thread::spawn(move || {
            let (feeds, is_pending) = others;
            (0..EVENTS).for_each(|_| report(&feeds, &is_pending));
        });
        let mut out = Vec::new();
        is_pending.store(false, Ordering::Relaxed);
        feeds.take(&feed, &mut out, |lines| format!("skipped={lines}\n"));
        publisher.join().unwrap();
        // What its worker does in its next turn.
        if is_pending.load(Ordering::Relaxed) {
            feeds.take(&feed, &mut out, |lines| format!("skipped={lines}\n"));
        }
        assert_eq!(told(&out), 2 + EVENTS);
    });
}

use std::sync::mpsc;

use super::*;
use crate::workload::{Key, Then};

const MS: u64 = 1_000_000;

/// The reply to a read that was due then.
fn reply(due_ms: u64, meaning: Meaning) -> Reply {
    Reply {
        tag: due_ms * MS,
        verb: Verb::Get,
        key: Key::new(1, 16),
        meaning,
        last: true,
        then: Then::Nothing,
        value_bytes: 1,
        item_bytes: 1,
        arrived_ns: 0,
        ttl_s: 0,
    }
}

/// Reads that are due in a window of 1.5 s, one each 10 ms, and answered after `latency_ms`, or
/// given up then. Returns the intervals and the results.
fn recorded(latency_ms: u64, meaning: Meaning) -> (Vec<Interval>, Span) {
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(500 * MS, 2_000 * MS);
    let (sender, intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    for now_ms in (0..2_000 + latency_ms).step_by(10) {
        recorder.tick(now_ms * MS).unwrap();
        if let Some(due_ms) = now_ms.checked_sub(latency_ms) {
            let reply = reply(due_ms, meaning);
            let counts = window.contains(reply.tag);
            match meaning {
                Meaning::Lost => recorder.lost(&reply, counts),
                _ => recorder.reply(&reply, counts.then_some(latency_ms * MS)),
            }
        }
    }
    let span = recorder.finish((2_000 + latency_ms) * MS).unwrap();
    (intervals.iter().collect(), span.unwrap())
}

#[test]
fn the_last_interval_ends_with_the_window_and_what_comes_later_is_apart() {
    let (intervals, span) = recorded(300, Meaning::Hit);
    let bounds = intervals.iter().map(|it| it.from_ns / MS..it.to_ns / MS);
    let bounds: Vec<_> = bounds.collect();
    assert_eq!(bounds, [0..1_000, 1_000..1_500, 1_500..1_800]);
    let measured: Vec<_> = intervals.iter().map(Interval::is_measured).collect();
    assert_eq!(measured, [true, true, false]);
    // The rate is that of one reply each 10 ms, in the part of a second, too.
    let rates = intervals
        .iter()
        .map(|it| it.tally.hits as f64 / it.seconds());
    let rates: Vec<_> = rates.map(|rate| rate.round() as u64).collect();
    assert_eq!(rates, [100, 100, 0]);
    let latencies: Vec<_> = intervals.iter().map(|it| it.reads.len()).collect();
    assert_eq!(latencies, [70, 50, 30]);
    assert_eq!((span.tally.hits, span.in_time, span.lost), (150, 120, 0));
}

#[test]
fn lost_requests_count_if_they_were_due_in_the_window() {
    for latency_ms in [100, 500, 5_000] {
        let (intervals, span) = recorded(latency_ms, Meaning::Lost);
        assert_eq!((span.tally.lost, span.lost, span.in_time), (150, 150, 0));
        let lost: u64 = intervals.iter().map(|it| it.tally.lost).sum();
        assert_eq!(lost, 150);
    }
}

#[test]
fn a_thread_that_comes_late_to_the_end_cuts_every_interval() {
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(0, 2_000 * MS);
    let (sender, intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    recorder.tick(0).unwrap();
    recorder.tick(2_300 * MS).unwrap();
    recorder.finish(2_300 * MS).unwrap();
    let bounds = intervals.iter().map(|it| it.from_ns / MS..it.to_ns / MS);
    let bounds: Vec<_> = bounds.collect();
    assert_eq!(bounds, [0..1_000, 1_000..2_300]);
}

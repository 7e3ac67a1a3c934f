//! The last hour, so that a page that is opened after an incident shows it.

use std::collections::VecDeque;

use glimmer_base::limits::{HISTORY_POINTS_MAX, HISTORY_STEP_MS};
use glimmer_node::{Command, Tally, Times};
use serde_json::{Value, json};

use crate::metrics::Source;

/// A column: its name, and its value now if there is one.
type Column = (&'static str, fn(&Source) -> Option<f64>);

/// What is kept. Counts are since the start, so that a page takes the difference of two points.
#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    ("requests", |now| worker(now, |work| work.requests)),
    ("get_hits", |now| Some(now.figures.table().requests.get_hits as f64)),
    ("get_misses", |now| Some(now.figures.table().requests.get_misses as f64)),
    ("stores", |now| Some(now.figures.table().requests.cmd_set as f64)),
    ("evictions", |now| Some(now.figures.table().store.evictions as f64)),
    ("expirations", |now| Some(now.figures.table().store.expired_reclaimed as f64)),
    ("refused", |now| {
        let node = now.figures.node();
        Some((node.rejected_connections + node.accept_failures) as f64)
    }),
    ("received", |now| worker(now, |work| work.bytes_read)),
    ("sent", |now| worker(now, |work| work.bytes_written)),
    ("cpu_s", |now| {
        let each = now.figures.workers.iter().map(|(_, cpu_ns)| *cpu_ns);
        Some(each.sum::<Option<u64>>()? as f64 / 1e9)
    }),
    ("items", |now| Some(now.figures.table().store.items as f64)),
    ("item_bytes", |now| Some(now.figures.table().store.bytes as f64)),
    ("connections", |now| worker(now, |work| work.curr_connections)),
    ("eviction_age_s", |now| Some(now.figures.table().ages.evicted_after_s? as f64)),
    ("get_p50_us", |now| latency(now, Command::Get, 0.5)),
    ("get_p99_us", |now| latency(now, Command::Get, 0.99)),
    ("set_p99_us", |now| latency(now, Command::Set, 0.99)),
    ("stalled", |now| Some(now.watched.stalled().count() as f64)),
];

fn worker(now: &Source, count: fn(&Tally) -> u64) -> Option<f64> {
    Some(count(now.figures.node()) as f64)
}

fn latency(now: &Source, command: Command, share: f64) -> Option<f64> {
    let mut all = Times::default();
    for latency in now
        .figures
        .latencies
        .iter()
        .filter(|it| it.command == command)
    {
        all.merge(&latency.late);
    }
    all.percentile_us(share)
}

/// One point of each column, at a time in milliseconds since the server's epoch.
struct Point {
    at_ms: u64,
    values: [Option<f64>; COLUMNS.len()],
}

/// The points of the last hour.
#[derive(Default)]
pub(super) struct History {
    points: VecDeque<Point>,
}

impl History {
    /// Whether it is time for another point.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let last = self.points.back();
        last.is_none_or(|last| now_ms >= last.at_ms + HISTORY_STEP_MS)
    }

    /// Keeps what is now, instead of the oldest point if there are as many as there may be.
    pub fn note(&mut self, now: &Source) {
        if self.points.len() == HISTORY_POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(Point {
            at_ms: now.figures.now.ms,
            values: std::array::from_fn(|column| COLUMNS[column].1(now)),
        });
    }

    /// The points after a time in milliseconds since the server's epoch. `{"columns": [...],
    /// "points": [[TIME, VALUE...]...]}`.
    pub fn show(&self, after_ms: u64) -> Value {
        let points = self.points.iter().filter(|point| point.at_ms > after_ms);
        let points = points.map(|point| {
            let values = point.values.iter().map(|value| json!(value));
            std::iter::once(json!(point.at_ms)).chain(values).collect()
        });
        json!({
            "columns": COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            "step_ms": HISTORY_STEP_MS,
            "points": points.collect::<Vec<Value>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64) -> Point {
        Point {
            at_ms,
            values: [Some(1.5); COLUMNS.len()],
        }
    }

    #[test]
    fn a_page_gets_what_it_does_not_have_yet() {
        let mut history = History::default();
        assert!(history.is_due(0));
        history.points.extend([at(1_000), at(6_000)]);
        assert!(!history.is_due(6_000 + HISTORY_STEP_MS - 1));
        assert!(history.is_due(6_000 + HISTORY_STEP_MS));
        let times = |after_ms| -> Vec<u64> {
            let shown = history.show(after_ms);
            let points = shown["points"].as_array().unwrap().iter();
            points.map(|point| point[0].as_u64().unwrap()).collect()
        };
        assert_eq!(times(0), [1_000, 6_000]);
        assert_eq!(times(1_000), [6_000]);
        assert!(times(6_000).is_empty());
    }
}

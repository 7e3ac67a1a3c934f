//! Goes through all keys once: stores them before a measurement, or reads them back after it.

use std::{sync::mpsc, time::Instant};

use anyhow::Result;

use super::{CountBy, Drive, Kernel, Recorder, Tally, Window, closed, record::Glance};
use crate::{
    driver::{Awaited, Connect, Job, Link},
    workload::{Ask, Key, Source, Verb, Workload},
};

/// Connections of a loading client: enough to keep one server thread busy.
const CONNECTIONS: u32 = 8;
/// Bytes of values that are on their way at once while keys are written, on average, unless one
/// value is longer. A server has little room for large values that it has not received whole.
const WRITTEN_BYTES_MAX: u64 = 1 << 20;
/// The mean length of the values of a pass is that of its first keys, of this many.
const KEYS_SAMPLED: u64 = 1000;
/// A request without a reply is given up after this time, in nanoseconds.
const REPLY_NS_MAX: u64 = 1_000_000_000;

/// What to do with the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Write version 0 of every key.
    Write,
    /// Read every key, many at a time, and count those that are found.
    Read,
}

/// Every key of a range in order.
struct All<'a> {
    pass: Pass,
    workload: &'a Workload,
    numbers: std::ops::Range<u64>,
    keys_per_get: u32,
    progress: &'a mut dyn FnMut(u64),
    asked: u64,
}

impl Source for All<'_> {
    fn next(&mut self, ask: &mut Ask) -> bool {
        let Some(number) = self.numbers.next() else {
            return false;
        };
        let key = self.workload.key(number);
        match self.pass {
            Pass::Write => {
                ask.one(Verb::Set, key);
                (ask.value_bytes, ask.version, ask.ttl_s) = (self.workload.sizes.of(number), 0, 0);
            }
            Pass::Read => {
                ask.one(Verb::Get, key);
                let more = self.numbers.by_ref().take(self.keys_per_get as usize - 1);
                ask.keys
                    .extend(more.map(|number| self.workload.key(number)));
            }
        }
        self.asked += ask.keys.len() as u64;
        if self.asked.is_multiple_of(1 << 12) {
            (self.progress)(self.asked);
        }
        true
    }

    fn follow(&mut self, _: &mut Ask, _: Key, _: u32, _: u32) {}
}

struct Run<'a> {
    all: All<'a>,
    in_flight: u32,
}

impl Job for Run<'_> {
    type Output = Tally;

    fn run<L: Link + Awaited>(mut self, links: Vec<L>) -> Result<Tally> {
        let (window, glance) = (Window::closed(), Glance::default());
        let (sender, _receiver) = mpsc::channel();
        let mut recorder = Recorder::new(&window, &glance, None, sender);
        let kernel = Kernel::new(Instant::now(), &links)?;
        let drive = Drive::new(links, kernel, &mut recorder, CountBy::ByReply, REPLY_NS_MAX);
        closed::run(drive, &mut self.all, self.in_flight)?;
        Ok(*recorder.tally())
    }
}

/// Goes through the keys `numbers` of a workload in order and returns the counters. `progress`
/// receives the number of keys sent so far. An item that the server refuses is counted and not sent
/// again.
pub fn pass(
    target: &impl Connect,
    workload: &Workload,
    pass: Pass,
    numbers: std::ops::Range<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<Tally> {
    let burst = target.burst_keys();
    let (keys_per_get, connections, in_flight) = match pass {
        Pass::Write => {
            let values = values_at_once(workload, &numbers);
            let connections = values.min(CONNECTIONS);
            (1, connections, burst.min(values / connections))
        }
        Pass::Read => (burst, CONNECTIONS, 1),
    };
    let all = All {
        pass,
        workload,
        numbers,
        keys_per_get,
        progress,
        asked: 0,
    };
    target.open(connections as usize, Run { all, in_flight })
}

/// How many values of these keys may be on their way at once.
fn values_at_once(workload: &Workload, numbers: &std::ops::Range<u64>) -> u32 {
    let sampled = numbers.clone().take(KEYS_SAMPLED as usize);
    let bytes: u64 = sampled
        .map(|number| u64::from(workload.sizes.of(number)))
        .sum();
    let keys = (numbers.end - numbers.start).clamp(1, KEYS_SAMPLED);
    let values = WRITTEN_BYTES_MAX * keys / bytes.max(1);
    values.clamp(1, u32::MAX.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_large_values_are_on_their_way_at_once_and_many_small_ones() {
        let at_once = |sizes: &str, keys| {
            let sizes = sizes.parse().unwrap();
            let workload = Workload {
                keys,
                sizes,
                ..Workload::default()
            };
            values_at_once(&workload, &(0..keys))
        };
        assert_eq!(at_once("1000000", 100), 1);
        assert_eq!(at_once("100000", 100), 10);
        assert!(at_once("64", 100_000) > 10_000);
        assert!(at_once("0", 100) > 10_000);
        assert_eq!(at_once("64", 0), 1 << 20, "nothing to write");
    }
}

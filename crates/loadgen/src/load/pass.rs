//! Goes through all keys once: stores them before a measurement, or reads them back after it.

use std::{os::fd::AsFd, sync::mpsc, time::Instant};

use anyhow::Result;

use super::{CountBy, Drive, Kernel, Recorder, Tally, Window, closed, record::Glance};
use crate::{
    driver::{Connect, Job, Link},
    workload::{Ask, Key, Source, Verb, Workload},
};

/// Connections of a loading client: enough to keep one server thread busy.
const CONNECTIONS: usize = 8;
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

    fn run<L: Link + AsFd>(mut self, links: Vec<L>) -> Result<Tally> {
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
    let (keys_per_get, in_flight) = match pass {
        Pass::Write => (1, burst),
        Pass::Read => (burst, 1),
    };
    let all = All {
        pass,
        workload,
        numbers,
        keys_per_get,
        progress,
        asked: 0,
    };
    target.open(CONNECTIONS, Run { all, in_flight })
}

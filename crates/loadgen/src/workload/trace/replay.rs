//! Replays a trace. Requests are due when they were recorded. If the trace counts whole seconds,
//! they are spaced evenly within each. They are divided among threads by key, so that the requests
//! for a key stay in order.

use std::{collections::VecDeque, iter::Peekable};

use anyhow::Result;

use super::{Record, Records, Trace};
use crate::workload::{Ask, Key, Source, Then, VALUE_BYTES_MAX, Verb};

/// Requests of one second that are spaced together. More requests are divided into several lots.
const LOT_MAX: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// Requests from a trace.
pub struct Replay {
    records: Peekable<Records>,
    /// This thread's requests of the current second, with the time at which each is due.
    lot: VecDeque<(u64, Record)>,
    /// When the trace begins: seconds, and nanoseconds since then.
    start: Option<(u64, u32)>,
    /// When the last request was due.
    due_ns: u64,
    part: u64,
    parts: u64,
    on_miss: Then,
    version: u32,
    error: Option<anyhow::Error>,
}

impl Replay {
    /// The requests of one of `parts` threads.
    pub fn new(trace: &Trace, part: u64, parts: u64) -> Result<Replay> {
        Ok(Replay {
            records: trace.records()?.peekable(),
            lot: VecDeque::new(),
            start: None,
            due_ns: 0,
            part,
            parts,
            on_miss: if trace.set_on_miss {
                Then::SetIfMissed
            } else {
                Then::Nothing
            },
            version: (part as u32) << 18,
            error: None,
        })
    }

    /// Reads the requests of the next second. Those without an exact time are spread evenly over
    /// it: clients do not send all requests of a second at once.
    fn fill(&mut self) -> Result<()> {
        while self.lot.is_empty() {
            let Some(first) = self.records.next().transpose()? else {
                return Ok(());
            };
            let at_s = first.at_s;
            let begin = (at_s, first.fraction_ns.unwrap_or(0));
            let (start_s, start_ns) = *self.start.get_or_insert(begin);
            let mut count = 0u64;
            let mut next = Some(first);
            while let Some(record) = next {
                if crate::workload::key_part(record.number, self.parts) == self.part {
                    self.lot.push_back((count, record));
                }
                count += 1;
                let same = |record: &Result<Record>| {
                    record.as_ref().is_ok_and(|record| record.at_s == at_s)
                };
                next = match count < LOT_MAX as u64 {
                    true => self.records.next_if(same).transpose()?,
                    false => None,
                };
            }
            let second_ns = at_s.saturating_sub(start_s).saturating_mul(SECOND_NS);
            for (due, record) in &mut self.lot {
                let spread_ns = *due * SECOND_NS / count;
                let within_ns = record.fraction_ns.map_or(spread_ns, u64::from);
                *due = second_ns
                    .saturating_add(within_ns)
                    .saturating_sub(start_ns.into());
            }
        }
        Ok(())
    }
}

impl Source for Replay {
    fn is_recorded(&self) -> bool {
        true
    }

    fn next(&mut self, ask: &mut Ask) -> bool {
        if self.lot.is_empty()
            && let Err(error) = self.fill()
        {
            self.error = Some(error);
            return false;
        }
        let Some((at_ns, record)) = self.lot.pop_front() else {
            return false;
        };
        // A trace whose clock steps back continues without a pause.
        self.due_ns = self.due_ns.max(at_ns);
        let key = Key::new(record.number, usize::from(record.key_bytes));
        self.version = self.version.wrapping_add(1);
        ask.one(record.verb, key);
        ask.then = if record.verb == Verb::Get {
            self.on_miss
        } else {
            Then::Nothing
        };
        ask.value_bytes = record.value_bytes.min(VALUE_BYTES_MAX);
        ask.version = self.version;
        ask.ttl_s = record.ttl_s.min(crate::workload::TTL_S_MAX);
        ask.at_ns = self.due_ns;
        true
    }

    fn follow(&mut self, ask: &mut Ask, key: Key, value_bytes: u32, ttl_s: u32) {
        self.version = self.version.wrapping_add(1);
        ask.one(Verb::Set, key);
        (ask.value_bytes, ask.version, ask.ttl_s) = (value_bytes, self.version, ttl_s);
    }

    fn error(&mut self) -> Option<anyhow::Error> {
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::trace::Format;

    fn trace(text: &str) -> (tempfile::TempDir, Trace) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cluster.csv");
        std::fs::write(&file, text).unwrap();
        let trace = Trace::new(file, None).unwrap();
        (directory, trace)
    }

    fn all(trace: &Trace, part: u64, parts: u64) -> Vec<(u64, u64, Verb)> {
        let mut replay = Replay::new(trace, part, parts).unwrap();
        let mut ask = Ask::default();
        let mut requests = Vec::new();
        while replay.next(&mut ask) {
            requests.push((ask.at_ns, ask.keys[0].number(), ask.verb));
        }
        assert!(replay.error().is_none());
        requests
    }

    #[test]
    fn the_requests_of_a_second_are_spread_over_it() {
        let (_directory, trace) =
            trace("100,1,8,5,0,get,0\n100,2,8,5,0,set,9\n102,1,8,5,0,delete,0\n");
        assert_eq!((trace.format, trace.set_on_miss), (Format::Twitter, false));
        let expected = [
            (0, 1, Verb::Get),
            (SECOND_NS / 2, 2, Verb::Set),
            (2 * SECOND_NS, 1, Verb::Delete),
        ];
        assert_eq!(all(&trace, 0, 1), expected);
    }

    #[test]
    fn exact_times_are_kept_also_where_the_clock_steps_back() {
        let text = "1,W,0,512,1577808144360767\n\
                    1,R,512,512,1577808144360768\n\
                    1,R,0,512,1577808144360766\n\
                    1,R,512,512,1577808145360767\n";
        let (_directory, trace) = trace(text);
        assert_eq!(trace.format, Format::Alibaba);
        let due: Vec<u64> = all(&trace, 0, 1).iter().map(|request| request.0).collect();
        assert_eq!(due, [0, 1000, 1000, SECOND_NS]);
    }

    #[test]
    fn threads_divide_the_keys_and_keep_the_order_of_each() {
        let lines: Vec<String> = (0..1000)
            .map(|turn| format!("{},{},8,5,0,get,0\n", turn / 100, turn % 37))
            .collect();
        let (_directory, trace) = trace(&lines.concat());
        let mut together = [all(&trace, 0, 3), all(&trace, 1, 3), all(&trace, 2, 3)].concat();
        assert!(
            [0, 1, 2]
                .into_iter()
                .all(|part| !all(&trace, part, 3).is_empty())
        );
        together.sort();
        let mut alone = all(&trace, 0, 1);
        alone.sort();
        assert_eq!(together, alone);
    }

    #[test]
    fn a_trace_of_reads_writes_what_it_missed() {
        let (_directory, trace) = trace("1,77,116\n");
        assert!(trace.format == Format::Csv && trace.set_on_miss);
        let mut replay = Replay::new(&trace, 0, 1).unwrap();
        let mut ask = Ask::default();
        assert!(replay.next(&mut ask));
        assert_eq!((ask.then, ask.value_bytes), (Then::SetIfMissed, 100));
        let (key, bytes, ttl) = (ask.keys[0], ask.value_bytes, ask.ttl_s);
        replay.follow(&mut ask, key, bytes, ttl);
        assert_eq!(
            (ask.verb, ask.keys[0].number(), ask.value_bytes),
            (Verb::Set, 77, 100)
        );
        assert!(!replay.next(&mut ask));
    }

    #[test]
    fn a_broken_trace_says_where() {
        let (_directory, trace) = trace("1,a,8,5,0,get,0\n1,b,8,5,0,what,0\n");
        let mut replay = Replay::new(&trace, 0, 1).unwrap();
        let mut ask = Ask::default();
        assert!(replay.next(&mut ask) && !replay.next(&mut ask));
        assert!(format!("{:#}", replay.error().unwrap()).contains("record 2"));
    }
}

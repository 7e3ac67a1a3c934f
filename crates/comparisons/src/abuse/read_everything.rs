//! A client that reads every item once and then stores new ones. In this state, an unbounded
//! eviction rule like CLOCK would go past all items for one store.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{Bounds, Case, Scenario, Subject, TextClient, manners::PATIENCE};

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 8;
/// Bytes of `-m` per item. This many items fill it, however few bytes an item takes in addition to
/// key and value.
const BYTES_PER_ITEM: usize = 40;
/// Items that are stored or read with one message.
const PER_MESSAGE: usize = 500;
/// Time limit of the hostile client, longer than that of a well-behaved one.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct ReadEverything;

fn key(item: usize) -> String {
    format!("{item:0KEY_BYTES$}")
}

fn store(client: &mut TextClient, first: usize) -> Result<()> {
    let value = "x".repeat(VALUE_BYTES);
    let set = |item| format!("set {} 0 0 {VALUE_BYTES} noreply\r\n{value}\r\n", key(item));
    let sets: String = (first..first + PER_MESSAGE).map(set).collect();
    client.send(sets.as_bytes())?;
    client.send(b"mn\r\n")?;
    let answer = client.line()?;
    ensure!(answer == "MN", "storing items was answered {answer:?}");
    Ok(())
}

/// Reads items, so that those that exist count as used.
fn read(client: &mut TextClient, first: usize) -> Result<()> {
    let get = |item| format!("mg {} k q\r\n", key(item));
    let gets: String = (first..first + PER_MESSAGE).map(get).collect();
    client.send(gets.as_bytes())?;
    client.send(b"mn\r\n")?;
    while client.line()? != "MN" {}
    Ok(())
}

fn items(case: &Case) -> usize {
    (case.memory_mib << 20) / BYTES_PER_ITEM / PER_MESSAGE * PER_MESSAGE
}

impl Scenario for ReadEverything {
    fn name(&self) -> &'static str {
        "read-everything"
    }

    fn about(&self) -> &'static str {
        "one client reads every item of a full server, then stores new ones"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |memory_mib| Case {
            memory_mib,
            connections: 1,
            ..Case::default()
        };
        match every {
            false => vec![case(256)],
            true => vec![case(256), case(768)],
        }
    }

    fn glimmer_arguments(&self, _: &Case) -> Vec<String> {
        ["--table", "memc3"].map(str::to_owned).into()
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let mut client = TextClient::connect(subject.address(), LONG_PATIENCE)?;
        (0..items(case))
            .step_by(PER_MESSAGE)
            .try_for_each(|first| store(&mut client, first))
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let mut client = TextClient::connect(subject.address(), LONG_PATIENCE)?;
        let (mut next, mut rounds, mut longest) = (items(case), 0, Duration::ZERO);
        while !stop.load(Relaxed) {
            for first in (next - items(case)..next).step_by(PER_MESSAGE) {
                if stop.load(Relaxed) {
                    break;
                }
                read(&mut client, first)?;
            }
            // One at a time: each store may meet only items in use.
            for _ in 0..100 {
                let begin = Instant::now();
                client.set(&key(next), &[b'x'; VALUE_BYTES])?;
                longest = longest.max(begin.elapsed());
                next += 1;
            }
            next = next.next_multiple_of(PER_MESSAGE);
            rounds += 1;
        }
        Ok(format!(
            "{rounds} rounds, longest set after one {:.1} ms",
            longest.as_secs_f64() * 1e3
        ))
    }

    /// Well-behaved clients must notice nothing.
    fn bounds(&self, _: &Case) -> Bounds {
        Bounds {
            p99: Duration::from_millis(20),
            longest: PATIENCE.min(Duration::from_millis(100)),
            ..Bounds::default()
        }
    }
}

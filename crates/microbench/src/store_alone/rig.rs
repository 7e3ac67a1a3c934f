//! A table under test: its workers, and the loop that drives them.

use std::{
    sync::Barrier,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use glimmer_base::limits::BATCH_MAX;
use glimmer_engine::Stages;

use super::stream::{Operation, Share};
use glimmer_measure::machine;

/// Batches between two reads of the clock.
const BATCHES: usize = 256;

/// A table of any kind with its workers.
pub trait Rig {
    /// The keys that worker `worker` may access.
    fn share(&self, worker: usize) -> Share;

    /// Drives all workers at the same time, each pinned to the core with its number and with its
    /// own list.
    fn run(&mut self, lists: &[Vec<Operation>], task: &Task) -> Result<Outcome>;

    /// The number of items, if the table knows it.
    fn items(&mut self) -> Option<u64>;

    /// Runs the complete pipeline for about `duration` and returns operations per second.
    fn operations_per_s(
        &mut self,
        lists: &[Vec<Operation>],
        stages: Stages,
        duration: Duration,
    ) -> Result<f64> {
        let task = Task {
            stages,
            ..Task::lasting(duration)
        };
        Ok(self.run(lists, &task)?.operations_per_s)
    }
}

/// What the workers do with their lists.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Stages of the pipeline, for tables that have one.
    pub stages: Stages,
    /// Whether to store items that a read did not find, as a cache's user does.
    pub fill: bool,
    /// When to stop.
    pub until: Until,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time, going through the list as often as necessary.
    Elapsed(Duration),
    /// At the end of the list.
    End,
}

impl Task {
    /// Operations for about this long.
    pub fn lasting(duration: Duration) -> Task {
        Task {
            stages: Stages::ALL,
            fill: false,
            until: Until::Elapsed(duration),
        }
    }

    /// Goes through the list once and stores missed items.
    pub fn filling() -> Task {
        Task {
            stages: Stages::ALL,
            fill: true,
            until: Until::End,
        }
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Operations per second over all workers.
    pub operations_per_s: f64,
    /// Number of keys read.
    pub reads: u64,
    /// Number of read keys that were found.
    pub found: u64,
}

impl Outcome {
    /// The share of reads that found nothing.
    pub fn missed(&self) -> f64 {
        (self.reads - self.found) as f64 / self.reads.max(1) as f64
    }
}

/// Counters of a worker's reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Keys read.
    pub reads: u64,
    /// Keys found.
    pub found: u64,
    /// Values that did not belong to their keys.
    pub wrong: u64,
}

/// A worker of a table.
pub trait Worker: Send {
    /// Executes a batch, including the computation of keyhashes. Written values have this version;
    /// every value read is verified.
    fn batch(&mut self, batch: &[Operation], task: &Task, version: u32, tally: &mut Tally);

    /// The number of items in this worker's part, if the table knows it. The sum over all workers
    /// is the number of all items.
    fn items(&mut self) -> Option<u64> {
        None
    }
}

/// Which stored items a table may lose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// At most this share of the items may be missing. With more, the table would look faster than
    /// it is. A table that may lose some is asked how many it has: reads of skewed keys tell more
    /// about its hottest key.
    AtMost(f64),
    /// Items that its eviction rule gives up. Reads that miss store the item again, and are
    /// counted.
    Refilled,
}

/// The workers of a table.
pub struct Team<W> {
    workers: Vec<W>,
    share: Share,
    /// Number of stored items; higher key numbers are absent.
    items: u32,
    loss: Loss,
}

impl<W: Worker> Team<W> {
    /// The workers of an empty table, with the share of the first.
    pub fn new(workers: Vec<W>, share: Share, loss: Loss) -> Team<W> {
        Team {
            workers,
            share,
            items: 0,
            loss,
        }
    }

    /// Stores items, each by the worker that owns it, even if other workers may store it.
    pub fn fill(mut self, items: u32) -> Result<Self> {
        let share = self.share;
        let fill = move |worker: &mut W, number: usize| {
            let share = Share {
                worker: number,
                writes_all: false,
                ..share
            };
            let task = Task::filling();
            let mut batch = Vec::with_capacity(BATCH_MAX);
            let mut tally = Tally::default();
            for number in (0..items).filter(|&number| share.includes(number, true)) {
                batch.push(Operation::new(number, true));
                if batch.len() == BATCH_MAX {
                    worker.batch(&batch, &task, 0, &mut tally);
                    batch.clear();
                }
            }
            worker.batch(&batch, &task, 0, &mut tally);
        };
        std::thread::scope(|scope| {
            for (number, worker) in self.workers.iter_mut().enumerate() {
                scope.spawn(move || fill(worker, number));
            }
        });
        self.items = items;
        Ok(self)
    }

    /// Whether these reads are of keys that were stored. A list has reads of one kind only.
    fn expects_hits(&self, lists: &[Vec<Operation>]) -> Result<bool> {
        let mut reads = lists
            .iter()
            .flatten()
            .filter(|operation| !operation.writes());
        let is_stored = |operation: &Operation| operation.number() < self.items;
        let first = reads.next().is_none_or(is_stored);
        ensure!(
            reads.all(|operation| is_stored(operation) == first),
            "a list reads keys that are there, or keys that are not"
        );
        Ok(first)
    }
}

impl<W: Worker> Rig for Team<W> {
    fn share(&self, worker: usize) -> Share {
        Share {
            worker,
            ..self.share
        }
    }

    fn items(&mut self) -> Option<u64> {
        self.workers.iter_mut().map(Worker::items).sum()
    }

    fn run(&mut self, lists: &[Vec<Operation>], task: &Task) -> Result<Outcome> {
        let hits = self.expects_hits(lists)?;
        let fill = task.fill || hits && self.loss == Loss::Refilled;
        let task = Task { fill, ..*task };
        // A worker without a list does nothing.
        let start = Barrier::new(self.workers.len().min(lists.len()));
        let outcome = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (core, (worker, list)) in self.workers.iter_mut().zip(lists).enumerate() {
                let (start, task) = (&start, &task);
                threads.push(scope.spawn(move || drive(worker, list, task, core, start)));
            }
            let mut sum = Outcome::default();
            for thread in threads {
                let one = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                sum.operations_per_s += one.operations_per_s;
                sum.reads += one.reads;
                sum.found += one.found;
            }
            Ok::<Outcome, anyhow::Error>(sum)
        })?;
        if !task.fill {
            ensure!(
                hits || outcome.found == 0,
                "{} keys were found that no worker has stored",
                outcome.found
            );
            if let (true, Loss::AtMost(most)) = (hits, self.loss) {
                let counted = if most > 0.0 { self.items() } else { None };
                let missing = match counted {
                    Some(held) => 1.0 - held as f64 / f64::from(self.items),
                    None => outcome.missed(),
                };
                ensure!(
                    missing <= most,
                    "{:.2}% of the items are missing",
                    missing * 100.0
                );
            }
        }
        Ok(outcome)
    }
}

/// Runs the operations on one core. Callgrind counts what happens in here.
#[inline(never)]
fn drive<W: Worker>(
    worker: &mut W,
    list: &[Operation],
    task: &Task,
    core: usize,
    start: &Barrier,
) -> Result<Outcome> {
    let pinned = machine::pin([core]);
    start.wait();
    pinned?;
    let mut tally = Tally::default();
    let mut operations = 0u64;
    let begin = Instant::now();
    'lists: loop {
        for blocks in list.chunks(BATCH_MAX * BATCHES) {
            for batch in blocks.chunks(BATCH_MAX) {
                worker.batch(batch, task, 1, &mut tally);
            }
            operations += blocks.len() as u64;
            if let Until::Elapsed(duration) = task.until
                && begin.elapsed() >= duration
            {
                break 'lists;
            }
        }
        if matches!(task.until, Until::End) || list.is_empty() {
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let Tally {
        reads,
        found,
        wrong,
    } = tally;
    ensure!(
        wrong == 0,
        "{wrong} of {reads} reads returned a wrong value"
    );
    Ok(Outcome {
        operations_per_s: operations as f64 / seconds,
        reads,
        found,
    })
}

//! What one worker's requests were for, by size.

use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};
use glimmer_dispatch::{Ask, Histogram, SizeClass};
use glimmer_engine::{Done, Job, Status};

use super::ask::ask;

/// The requests that one worker has executed since the server began, by the size of their values.
///
/// Only the worker writes, with a load and a store. Others read counts that may be a moment old.
#[derive(Debug)]
pub struct Profile {
    requests: [AtomicU64; SizeClass::COUNT],
    bytes: [AtomicU64; SizeClass::COUNT],
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            requests: [const { AtomicU64::new(0) }; SizeClass::COUNT],
            bytes: [const { AtomicU64::new(0) }; SizeClass::COUNT],
        }
    }
}

impl Profile {
    /// Counts the jobs of a batch that were executed.
    pub fn note(&self, jobs: &[Job<'_>], done: &[Done]) {
        for (job, done) in jobs.iter().zip(done) {
            if done.status == Status::Done {
                self.record(match ask(&job.request.verb) {
                    Ask::Read => done.read_bytes,
                    Ask::Write { bytes } => bytes,
                });
            }
        }
    }

    #[inline(always)]
    fn record(&self, bytes: u32) {
        let place = SizeClass::of(bytes).place();
        add(&self.requests[place], 1);
        add(&self.bytes[place], bytes.into());
    }

    /// The counts now.
    pub fn histogram(&self) -> Histogram {
        let load = |counts: &[AtomicU64; SizeClass::COUNT]| {
            std::array::from_fn(|place| counts[place].load(Relaxed))
        };
        Histogram::of(load(&self.requests), load(&self.bytes))
    }
}

#[inline(always)]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

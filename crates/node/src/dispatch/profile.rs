//! A histogram of one worker's requests, by the size of their values.

use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};
use glimmer_dispatch::{Histogram, SizeClass};
use glimmer_engine::{Done, Job, Status};
use glimmer_proto::Form;
use glimmer_proto::native::Wanted;

use super::ask::value_bytes;

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
            if done.status == Status::Done && !is_continued(job) {
                self.record(value_bytes(job, done));
            }
        }
    }

    /// Counts a request for a value of this many bytes.
    #[inline(always)]
    pub fn record(&self, bytes: u32) {
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

/// Whether a job reads a later part of a value, or all of one for the digest of its parts. The
/// request was counted with the first part.
#[inline]
pub(crate) fn is_continued(job: &Job<'_>) -> bool {
    match &job.request.form {
        Form::Native(form) => matches!(form.extent.long, Wanted::Window(1..) | Wanted::All),
        _ => false,
    }
}

#[inline(always)]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Keyhash;
    use glimmer_proto::native::{self, Extent};
    use glimmer_proto::{Request, Verb};

    #[test]
    fn a_value_that_is_read_in_windows_is_one_request() {
        let windows = [0, 40_000, 80_000].map(|from| Job {
            keyhash: Keyhash(1),
            request: Request {
                key: b"key",
                verb: Verb::Get,
                form: Form::Native(native::Form {
                    shows_cas: false,
                    extent: Extent {
                        short_bytes_max: 1_000,
                        long: Wanted::Window(from),
                    },
                }),
            },
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        });
        let done = Done {
            status: Status::Done,
            read_bytes: 100_000,
            ..Done::SKIPPED
        };
        let profile = Profile::default();
        profile.note(&windows, &[done; 3]);
        let histogram = profile.histogram();
        assert_eq!(histogram.requests(), 1);
        assert_eq!(histogram.bytes_of_class(SizeClass::of(100_000)), 100_000);
    }
}

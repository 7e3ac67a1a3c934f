//! The hottest keys of the server, by reads that are sampled. It needs no accelerator: every
//! operator can use them.

use glimmer_base::Moment;
use glimmer_base::limits::{HOT_KEYS_MAX, POPULAR_SAMPLE_EVERY};
use glimmer_base::sync::{Mutex, lock};
use glimmer_engine::{Done, Job};
use glimmer_hotset::{Credit, HotKey, Popularity, SampledRead, Sampler};
use glimmer_proto::Verb;
use glimmer_proto::outcome::OutcomeKind;

use crate::dispatch::profile::is_continued;

/// What all workers know of hot keys.
#[derive(Debug)]
pub(crate) struct Popular(Mutex<State>);

#[derive(Debug)]
struct State {
    popularity: Popularity,
    sampler: Sampler,
}

impl Popular {
    pub fn new(now: Moment) -> Popular {
        Popular(Mutex::new(State {
            popularity: Popularity::new(HOT_KEYS_MAX, POPULAR_SAMPLE_EVERY, now.ms),
            sampler: Sampler::new(POPULAR_SAMPLE_EVERY, 1),
        }))
    }

    /// The hottest keys.
    pub fn hot_keys(&self, now_ms: u64) -> Vec<HotKey> {
        lock(&self.0).popularity.hot_keys(HOT_KEYS_MAX, now_ms)
    }

    /// Takes a request that was sampled. Returns how many requests further the next one is.
    pub fn take(&self, now: Moment, job: &Job<'_>, done: &Done) -> u32 {
        let mut state = lock(&self.0);
        let is_read = matches!(job.request.verb, Verb::Get) && !is_continued(job);
        if is_read && done.kind == Some(OutcomeKind::Value) {
            // A key that came in base64 is the same key as one that did not.
            job.request.with_key(|key| {
                let read = SampledRead {
                    keyhash: job.keyhash.within_partition(),
                    key,
                    value_bytes: done.read_bytes as usize,
                };
                state.popularity.read(&read, now.ms);
            });
        }
        state.sampler.distance()
    }

    /// The accelerator has answered reads of a key.
    pub fn credit(&self, credit: &Credit, now: Moment) {
        let popularity = &mut lock(&self.0).popularity;
        let keyhash = credit.keyhash.within_partition();
        match &credit.key {
            // The store may never have seen a read of it.
            Some(key) => {
                let read = SampledRead {
                    keyhash,
                    key,
                    value_bytes: credit.value_bytes,
                };
                popularity.credit_named(&read, credit.hits, now.ms);
            }
            None => popularity.credit(keyhash, credit.hits, now.ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Keyhash;
    use glimmer_proto::native::{self, Extent, Wanted};
    use glimmer_proto::{Form, Request};

    /// Hits of a key that the store has never been asked for.
    fn credit(hits: u64) -> Credit {
        Credit {
            keyhash: Keyhash(7),
            key: Some(b"hot"[..].into()),
            hits,
            value_bytes: 5,
        }
    }

    #[test]
    fn a_read_in_windows_is_one_read() {
        let now = Moment {
            ms: 0,
            epoch_unix_ms: 0,
        };
        let popular = Popular::new(now);
        let done = Done {
            kind: Some(OutcomeKind::Value),
            read_bytes: 100_000,
            ..Done::SKIPPED
        };
        for (long, keys) in [
            (Wanted::Window(40_000), 0),
            (Wanted::All, 0),
            (Wanted::Window(0), 1),
        ] {
            let extent = Extent {
                short_bytes_max: 1_000,
                long,
            };
            let job = Job {
                keyhash: Keyhash(7),
                request: Request {
                    key: b"large",
                    verb: Verb::Get,
                    form: Form::Native(native::Form {
                        shows_cas: false,
                        extent,
                    }),
                },
                out: 0,
                size_max: Job::ANY_SIZE,
                copy_max: Job::ANY_SIZE,
                client: 0,
            };
            popular.take(now, &job, &done);
            assert_eq!(popular.hot_keys(1000).len(), keys, "{long:?}");
        }
    }

    #[test]
    fn hits_count_once() {
        let at = |ms| Moment {
            ms,
            epoch_unix_ms: 0,
        };
        let popular = Popular::new(at(0));
        let hits = 40 * u64::from(POPULAR_SAMPLE_EVERY);
        popular.credit(&credit(hits), at(500));
        let keys = popular.hot_keys(1000);
        assert_eq!(keys.len(), 1);
        assert_eq!((&*keys[0].key, keys[0].value_bytes), (&b"hot"[..], 5));
        assert_eq!(keys[0].reads_per_s, hits as f64, "in one second");
    }

    /// 400 hits per second, of which a worker is told four times a second.
    #[test]
    fn a_key_with_few_hits_at_a_time_is_shown() {
        let at = |ms| Moment {
            ms,
            epoch_unix_ms: 0,
        };
        let popular = Popular::new(at(0));
        for now_ms in (250..=60_000).step_by(250) {
            popular.credit(&credit(100), at(now_ms));
        }
        let keys = popular.hot_keys(60_000);
        assert_eq!(keys.len(), 1);
        assert_eq!((&*keys[0].key, keys[0].value_bytes), (&b"hot"[..], 5));
        let reads_per_s = keys[0].reads_per_s;
        assert!((200.0..600.0).contains(&reads_per_s), "{reads_per_s}");
    }
}

//! Failures that are reported to no client. Workers count them, and the admin handler is told of
//! each kind at most once per [`ALARM_MS`], however often it occurs.

use glimmer_base::limits::ALARM_MS;
use glimmer_base::sync::{AtomicU32, AtomicU64, Ordering};

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A connection could not be accepted: descriptors or kernel memory ran out.
    Accept,
    /// A datagram with a reply could not be sent.
    Send,
    /// The kernel or the NIC dropped a datagram before it was received.
    Overflow,
    /// A client gave a wrong user or password.
    Login,
}

const FAILURES: [Failure; 4] = [
    Failure::Accept,
    Failure::Send,
    Failure::Overflow,
    Failure::Login,
];

/// Failures of one kind since the last alarm of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// What went wrong.
    pub failure: Failure,
    /// How often.
    pub count: u64,
    /// The kernel's error number of the last one; 0 if there is none.
    pub errno: u32,
}

/// The failures of all workers. Nothing else depends on the order in which its numbers become
/// visible, so relaxed accesses are enough.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    kinds: [Kind; FAILURES.len()],
}

#[derive(Debug, Default)]
struct Kind {
    count: AtomicU64,
    /// Failures of which the admin handler has been told. Only the thread that moved `due_ms`
    /// changes it.
    told: AtomicU64,
    /// When the next alarm may be reported, in milliseconds since the epoch.
    due_ms: AtomicU64,
    errno: AtomicU32,
}

impl Kind {
    fn is_told(&self) -> bool {
        self.count.load(Ordering::Relaxed) == self.told.load(Ordering::Relaxed)
    }

    /// The failures to report now.
    fn take(&self, now_ms: u64) -> Option<u64> {
        let due_ms = self.due_ms.load(Ordering::Relaxed);
        if self.is_told() || now_ms < due_ms {
            return None;
        }
        let next_ms = now_ms + ALARM_MS;
        let relaxed = Ordering::Relaxed;
        let moved = (self.due_ms).compare_exchange(due_ms, next_ms, relaxed, relaxed);
        moved.ok()?;
        let count = self.count.load(relaxed);
        let told = self.told.load(relaxed);
        self.told.store(count, relaxed);
        Some(count - told)
    }
}

impl Alarms {
    pub fn note(&self, failure: Failure, count: u64, errno: u32) {
        let kind = &self.kinds[failure as usize];
        kind.errno.store(errno, Ordering::Relaxed);
        kind.count.fetch_add(count, Ordering::Relaxed);
    }

    /// Passes due alarms to `tell`. Returns whether some are not due yet.
    pub fn tell(&self, now_ms: u64, mut tell: impl FnMut(Alarm)) -> bool {
        for (kind, failure) in self.kinds.iter().zip(FAILURES) {
            if let Some(count) = kind.take(now_ms) {
                let errno = kind.errno.load(Ordering::Relaxed);
                tell(Alarm {
                    failure,
                    count,
                    errno,
                });
            }
        }
        !self.kinds.iter().all(Kind::is_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_failure_is_told_at_most_once_in_a_while() {
        let alarms = Alarms::default();
        let told = |now_ms| {
            let mut told = Vec::new();
            let is_left = alarms.tell(now_ms, |alarm| told.push(alarm));
            (told, is_left)
        };
        let alarm = |failure, count, errno| Alarm {
            failure,
            count,
            errno,
        };
        assert_eq!(told(5), (vec![], false));
        alarms.note(Failure::Accept, 1, 24);
        assert_eq!(told(5), (vec![alarm(Failure::Accept, 1, 24)], false));
        for _ in 0..100 {
            alarms.note(Failure::Accept, 2, 24);
        }
        alarms.note(Failure::Login, 1, 0);
        assert_eq!(told(6), (vec![alarm(Failure::Login, 1, 0)], true));
        assert_eq!(told(5 + ALARM_MS - 1), (vec![], true));
        let accept = alarm(Failure::Accept, 200, 24);
        assert_eq!(told(5 + ALARM_MS), (vec![accept], false));
        assert_eq!(told(10 * ALARM_MS), (vec![], false));
    }
}

//! Readiness of sources without a descriptor: sources inside this process, and the list through
//! which a poller learns of them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a source is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bytes, the end of the stream, or its failure can be received.
    pub readable: bool,
    /// Bytes can be sent, or sending fails.
    pub writable: bool,
    /// The peer has stopped sending, or the connection failed. Receiving tells which.
    pub hung_up: bool,
}

/// The changes of one source since it was last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The number under which the source was added.
    pub token: u64,
    /// Bytes, the end of the stream, or a connection can be received.
    pub readable: bool,
    /// Bytes can be sent.
    pub writable: bool,
    /// The peer has stopped sending, or the connection failed. Receiving tells which.
    pub hung_up: bool,
    /// The descriptor has an error to report.
    pub failed: bool,
    /// Urgent data has come: a receive ends in front of it, whatever is behind it.
    pub urgent: bool,
}

/// When a source is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Once per [change](Signal::change).
    Edge,
    /// As long as it is readable.
    Level,
    /// The same, of a source that several pollers watch. Each change is reported to at least one
    /// that has not been told of an earlier one yet.
    Shared,
}

/// The readiness of a source inside this process. Clones are the same signal.
///
/// It behaves like a descriptor under epoll: a poller that watches edges reports each change once,
/// with the readiness at the time of the report, not of the change.
#[derive(Clone, Default)]
pub struct Signal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ready: Ready,
    /// One, or several that share the source.
    watchers: VecDeque<Watcher>,
}

struct Watcher {
    changed: Changed,
    token: u64,
    trigger: Trigger,
    /// Whether it is in the watcher's list.
    is_listed: bool,
}

/// The signals that changed since their watcher last looked, in the order of the changes.
#[derive(Clone, Default)]
pub(crate) struct Changed(Arc<Mutex<VecDeque<Weak<Mutex<State>>>>>);

impl Signal {
    /// Sets the readiness and reports a change: bytes arrived, or there is room for more.
    pub fn change(&self, ready: Ready) {
        let mut state = lock(&self.0);
        state.ready = ready;
        // As the kernel wakes one of several exclusive waiters, and not always the same.
        if let Some(first) = state.watchers.iter().position(|one| !one.is_listed) {
            self.list(&mut state.watchers[first]);
            state.watchers.rotate_left(first + 1);
        }
    }

    /// Sets the readiness after the source's own caller consumed something. Reports no change.
    pub fn note(&self, ready: Ready) {
        lock(&self.0).ready = ready;
    }

    pub(crate) fn watch(&self, changed: &Changed, token: u64, trigger: Trigger) {
        let mut watcher = Watcher {
            changed: changed.clone(),
            token,
            trigger,
            is_listed: false,
        };
        let mut state = lock(&self.0);
        state.watchers.retain(|other| {
            (trigger, other.trigger) == (Trigger::Shared, Trigger::Shared)
                && !other.changed.is(changed)
        });
        self.list(&mut watcher);
        state.watchers.push_back(watcher);
    }

    /// Stops reports of this signal to one poller.
    pub(crate) fn forget_for(&self, changed: &Changed) {
        let mut state = lock(&self.0);
        state
            .watchers
            .retain(|watcher| !watcher.changed.is(changed));
        lock(&changed.0).retain(|listed| !std::ptr::eq(listed.as_ptr(), Arc::as_ptr(&self.0)));
    }

    /// Stops all reports of this signal.
    pub fn forget(&self) {
        lock(&self.0).watchers.clear();
    }

    fn list(&self, watcher: &mut Watcher) {
        if !watcher.is_listed {
            watcher.is_listed = true;
            lock(&watcher.changed.0).push_back(Arc::downgrade(&self.0));
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lock(&self.0).ready.fmt(f)
    }
}

impl Changed {
    fn is(&self, other: &Changed) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Reports up to `most` of the signals that changed and are ready.
    pub fn report(&self, most: usize, into: &mut Vec<Readiness>) {
        let listed = lock(&self.0).len();
        for _ in 0..listed {
            if into.len() == most {
                return;
            }
            let Some(first) = lock(&self.0).pop_front() else {
                return;
            };
            if let Some(signal) = first.upgrade().map(Signal) {
                into.extend(signal.report_to(self));
            }
        }
    }

    /// Whether there is something to report.
    pub fn is_any(&self) -> bool {
        let listed = lock(&self.0).clone();
        let mut signals = listed.iter().filter_map(Weak::upgrade);
        signals.any(|signal| lock(&signal).readiness_for(self).is_some())
    }
}

impl Signal {
    /// The report for a signal taken off the list.
    fn report_to(&self, changed: &Changed) -> Option<Readiness> {
        let mut state = lock(&self.0);
        let readiness = state.readiness_for(changed);
        let mut watchers = state.watchers.iter_mut();
        if let Some(watcher) = watchers.find(|watcher| watcher.changed.is(changed)) {
            watcher.is_listed = false;
            if watcher.trigger != Trigger::Edge && readiness.is_some() {
                self.list(watcher);
            }
        }
        readiness
    }
}

impl State {
    fn readiness_for(&self, changed: &Changed) -> Option<Readiness> {
        let Ready {
            readable,
            writable,
            hung_up,
        } = self.ready;
        let mut watchers = self.watchers.iter();
        let watcher = watchers.find(|watcher| watcher.changed.is(changed))?;
        let writable = writable && watcher.trigger == Trigger::Edge;
        (readable || writable || hung_up).then_some(Readiness {
            token: watcher.token,
            readable,
            writable,
            hung_up,
            failed: false,
            urgent: false,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

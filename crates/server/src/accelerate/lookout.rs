//! Looks whether an interface is still there, on a thread of its own.
//!
//! The kernel tells under the lock of its network configuration, which others hold for milliseconds
//! to seconds. A worker must not wait for that, so it asks and goes on. Nobody is woken in a server
//! at rest.

use rustix::process::setpriority_process;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Milliseconds in which the thread is asked once at most. All workers ask about once a second.
const ASKED_EVERY_MS: u64 = 500;

/// The priority of the thread among the others of the process: workers go first.
const NICE: i32 = 10;

/// A thread that looks at an interface whenever it is asked, until the interface has gone. It ends
/// when this is dropped.
pub(super) struct Lookout {
    /// Asks the thread to look. It is only missing while this is dropped.
    ask: Option<SyncSender<()>>,
    asked_ms: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl Lookout {
    /// Starts the thread. It calls `gone` once, after the first time that `is_there` says no.
    pub fn start(
        is_there: impl Fn() -> bool + Send + 'static,
        gone: impl FnOnce() + Send + 'static,
    ) -> io::Result<Lookout> {
        // While it looks, one further look is asked for.
        let (ask, asked) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("lookout".into())
            .spawn(move || {
                // If it has no effect, the thread shares the CPU as all do.
                let _ = setpriority_process(Some(rustix::thread::gettid()), NICE);
                for () in asked {
                    if !is_there() {
                        return gone();
                    }
                }
            })?;
        Ok(Lookout {
            ask: Some(ask),
            asked_ms: AtomicU64::new(0),
            thread: Some(thread),
        })
    }

    /// Has the thread look soon, unless it was asked a moment ago. Never waits.
    pub fn ask(&self, now_ms: u64) {
        if self.asked_ms.load(Relaxed).abs_diff(now_ms) < ASKED_EVERY_MS {
            return;
        }
        self.asked_ms.store(now_ms, Relaxed);
        if let Some(ask) = &self.ask {
            // It is still to look, or has nothing to look at any more.
            let _ = ask.try_send(());
        }
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported, and ends nothing else.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn whoever_asks_waits_for_no_look() {
        let (look, looks) = channel();
        let (say, said) = channel::<()>();
        let is_there = move || {
            look.send(thread::current().id()).unwrap();
            said.recv().is_ok()
        };
        let lookout = Lookout::start(is_there, || {}).unwrap();
        lookout.ask(1000);
        assert_ne!(looks.recv().unwrap(), thread::current().id());
        // It looks until it is told something. However often it is asked, it then looks once more.
        (2..100).for_each(|second| lookout.ask(second * 1000));
        (0..3).for_each(|_| say.send(()).unwrap());
        drop(lookout);
        assert_eq!(looks.iter().count(), 1);
    }

    #[test]
    fn what_has_gone_is_told_once() {
        let (look, looks) = channel();
        let (tell, told) = channel();
        let is_there = move || look.send(()).is_err();
        let lookout = Lookout::start(is_there, move || tell.send(()).unwrap()).unwrap();
        lookout.ask(1000);
        told.recv().unwrap();
        lookout.ask(2000);
        drop(lookout);
        assert_eq!(looks.iter().count(), 1);
        assert!(told.recv().is_err());
    }

    #[test]
    fn many_who_ask_at_once_are_one() {
        let (look, looks) = channel();
        let lookout = Lookout::start(move || look.send(()).is_ok(), || {}).unwrap();
        lookout.ask(1000);
        looks.recv().unwrap();
        for now_ms in [1001, 1000 + ASKED_EVERY_MS - 1] {
            lookout.ask(now_ms);
        }
        drop(lookout);
        assert_eq!(looks.iter().count(), 0);
    }
}

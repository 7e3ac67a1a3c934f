//! Threads that shake hands for the workers. A handshake computes for as long as hundreds of
//! requests take, and for thousands of them with a long key, so no worker does it itself. The
//! kernel runs these threads when the workers leave it time.

use std::sync::mpsc;

use glimmer_base::limits::SHAKER_NICE;
use glimmer_base::sync::{Mutex, lock};
use glimmer_transport::run_behind_others;
use glimmer_transport::stream::{ByteStream, Handshaking};

use super::key::ConnectionKey;
use crate::forward::mailbox::Mailbox;

/// A connection that shakes hands.
pub(crate) struct Shaking {
    pub worker: usize,
    pub key: ConnectionKey,
    pub stream: Box<dyn ByteStream>,
    /// Until when it is worth it, in milliseconds since the epoch.
    pub until_ms: u64,
    /// How it stands.
    pub standing: Handshaking,
}

impl Shaking {
    /// Goes on as far as what has arrived suffices for, if it is not too late for it.
    pub fn go_on(&mut self, now_ms: u64) {
        if now_ms < self.until_ms {
            self.standing = self.stream.handshake();
        }
    }
}

/// What the workers and those threads hand to one another.
pub(crate) struct Shakers {
    /// `None` ends a thread.
    sender: mpsc::Sender<Option<Shaking>>,
    receiver: Mutex<mpsc::Receiver<Option<Shaking>>>,
    /// Threads that run.
    threads: usize,
    /// Connections that the threads have finished with, by worker.
    seen_to: Vec<Mailbox<Shaking>>,
}

impl Shakers {
    /// For this many threads, perhaps none: then the workers do it themselves.
    pub fn new(threads: usize, workers: usize) -> Shakers {
        let (sender, receiver) = mpsc::channel();
        Shakers {
            sender,
            receiver: Mutex::new(receiver),
            threads,
            seen_to: Mailbox::for_each(workers),
        }
    }

    /// Passes a connection to the handshake threads. Returns it if there are no such threads.
    pub fn hand_in(&self, shaking: Shaking) -> Option<Shaking> {
        match self.threads {
            0 => Some(shaking),
            _ => {
                // The other end is in this value.
                let _ = self.sender.send(Some(shaking));
                None
            }
        }
    }

    /// Whether a connection of this worker waits to be taken back.
    #[inline]
    pub fn has_any(&self, worker: usize) -> bool {
        !self.seen_to[worker].is_empty()
    }

    /// Takes a connection of this worker back.
    pub fn take_back(&self, worker: usize) -> Option<Shaking> {
        self.seen_to[worker].take()
    }

    /// What each of the threads does, until it is to end. `now_ms` tells the time in milliseconds
    /// since the epoch, and `wake` wakes a worker.
    pub fn run(&self, now_ms: impl Fn() -> u64, wake: impl Fn(usize) -> bool) {
        // If it has no effect, the thread shares the CPU as all do.
        run_behind_others(SHAKER_NICE);
        loop {
            let next = lock(&self.receiver).recv();
            let Ok(Some(mut shaking)) = next else {
                return;
            };
            shaking.go_on(now_ms());
            let worker = shaking.worker;
            self.seen_to[worker].put(shaking);
            wake(worker);
        }
    }

    /// Ends the threads.
    pub fn end(&self) {
        for _ in 0..self.threads {
            let _ = self.sender.send(None);
        }
    }
}

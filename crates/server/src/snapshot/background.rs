//! Writing a snapshot while the server serves: by a thread of its own, which clients call.

use super::out::Pace;
use super::{Order, SnapshotError, Snapshots, epoch_unix_ms, unix_ms};
use glimmer_node::NodeFigures;
use glimmer_notation::{counted, memory};
use glimmer_transport::run_behind_others;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How much less of a core than others the thread gets: it is to keep workers from nothing.
const NICE: i32 = 19;

/// The thread that writes. It ends when this is dropped, and with it what it writes.
pub(crate) struct Background {
    snapshots: Arc<Snapshots>,
    /// What it writes.
    feed: Arc<Mutex<Option<Arc<glimmer_node::SnapshotFeed>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Snapshots {
    /// A client wants a snapshot. False if one is being written.
    pub fn order(&self) -> bool {
        if !self.status.begin() {
            return false;
        }
        self.give(Order::Write);
        true
    }

    fn give(&self, new: Order) {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if *order != Order::End {
            *order = new;
        }
        self.ordered.notify_one();
    }

    /// Whether the server stops. Asked after the feed is shown: whoever ends it looks there next.
    fn is_ending(&self) -> bool {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) == Order::End
    }

    /// Waits for something to do.
    fn next_order(&self) -> Order {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *order {
                Order::End => return Order::End,
                Order::Write => return std::mem::replace(&mut *order, Order::Nothing),
                Order::Nothing => {}
            }
            let waited = self.ordered.wait(order);
            order = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Background {
    /// Starts the thread, for the workers of this node.
    pub fn start(snapshots: Arc<Snapshots>, node: NodeFigures) -> io::Result<Background> {
        let feed = Arc::new(Mutex::new(None));
        let (its, shown) = (snapshots.clone(), feed.clone());
        let thread = thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                // Where this is refused, it competes with workers as others do.
                run_behind_others(NICE);
                while its.next_order() == Order::Write {
                    if let Err(error) = its.write_served(&node, &shown) {
                        tracing::warn!("{error}");
                    }
                }
            })?;
        Ok(Background {
            snapshots,
            feed,
            thread: Some(thread),
        })
    }
}

impl Snapshots {
    /// Writes what the workers copy while they serve.
    fn write_served(
        &self,
        node: &NodeFigures,
        shown: &Mutex<Option<Arc<glimmer_node::SnapshotFeed>>>,
    ) -> Result<(), SnapshotError> {
        let unfinished = self.begin()?;
        let epoch_unix_ms = epoch_unix_ms(node.now(), unix_ms());
        let Some(feed) = node.begin_snapshot(epoch_unix_ms) else {
            let error = SnapshotError::Cancelled(self.path.clone());
            self.status.fail(error.to_string());
            return Err(error);
        };
        let show = |feed| *shown.lock().unwrap_or_else(PoisonError::into_inner) = feed;
        show(Some(feed.clone()));
        if self.is_ending() {
            feed.cancel();
        }
        let written = self.write(unfinished, &feed, Pace::Steady, |_, _| ());
        show(None);
        node.end_snapshot();
        let last = written?;
        tracing::info!(
            "snapshot {}: {}, {} in {} ms",
            self.path.display(),
            counted(last.items, "item"),
            memory(last.bytes as f64),
            last.ms
        );
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.snapshots.give(Order::End);
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = &*feed {
            feed.cancel();
        }
        drop(feed);
        if let Some(thread) = self.thread.take() {
            // It may have ended with a panic, which has been reported.
            let _ = thread.join();
        }
    }
}

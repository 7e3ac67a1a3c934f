//! The kernel's account of the store's pages, read by a thread of its own.
//!
//! The kernel walks all page tables for it, which takes ten milliseconds per GiB of small pages. A
//! worker must not wait for that, so it asks for an account and goes on, and is told when there is
//! one. All requests within [`PAGES_KEPT_MS`] are shown the same account.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use glimmer_base::limits::PAGES_KEPT_MS;
use glimmer_engine::{Figures, PageReport};
use glimmer_node::NodeFigures;

/// The kernel's account of the store's pages.
pub(super) struct Pages {
    shared: Arc<Mutex<State>>,
    /// Asks the thread for an account. The thread ends when this is dropped.
    ask: mpsc::SyncSender<()>,
    /// Who waits for an account.
    node: Arc<OnceLock<NodeFigures>>,
}

#[derive(Default)]
struct State {
    /// The last account, and the last time at which it was asked for before it was there, in
    /// milliseconds since the epoch.
    known: Option<(PageReport, u64)>,
    /// The last time at which the account was asked for that is being read.
    asked_ms: Option<u64>,
}

impl Pages {
    /// The account of these tables.
    pub fn of(tables: Vec<Arc<dyn Figures>>) -> io::Result<Pages> {
        Pages::read_by(move || {
            let addresses = tables.iter().flat_map(|table| table.addresses());
            PageReport::of(&addresses.collect::<Vec<_>>())
        })
    }

    /// The account that `read` reads.
    fn read_by(read: impl Fn() -> PageReport + Send + 'static) -> io::Result<Pages> {
        let shared = Arc::new(Mutex::new(State::default()));
        let node: Arc<OnceLock<NodeFigures>> = Arc::default();
        // While one is being read, no other is asked for.
        let (ask, asked) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("housekeeping".to_owned());
        let (state, announced) = (shared.clone(), node.clone());
        thread.spawn(move || {
            for () in asked {
                let report = read();
                let mut state = lock(&state);
                state.known = state.asked_ms.take().map(|asked_ms| (report, asked_ms));
                drop(state);
                if let Some(node) = announced.get() {
                    node.announce();
                }
            }
        })?;
        Ok(Pages { shared, ask, node })
    }

    /// The workers of this node are told when there is an account.
    pub fn open(&self, node: NodeFigures) {
        // A server has one node.
        let _ = self.node.set(node);
    }

    /// The account, if it has been read lately. If not, it will be.
    pub fn look(&self, now_ms: u64) -> Option<PageReport> {
        let mut state = lock(&self.shared);
        if let Some((report, at_ms)) = state.known
            && now_ms.saturating_sub(at_ms) < PAGES_KEPT_MS
        {
            return Some(report);
        }
        if state.asked_ms.replace(now_ms).is_none() {
            // The thread has taken the last one, so there is room.
            let _ = self.ask.try_send(());
        }
        None
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn another_thread_reads_one_account_for_all_who_ask() {
        let (reads, caller) = (Arc::new(AtomicUsize::new(0)), thread::current().id());
        let (begin, begun) = mpsc::channel::<()>();
        let count = reads.clone();
        let pages = Pages::read_by(move || {
            assert_ne!(thread::current().id(), caller);
            begun.recv().unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            PageReport::default()
        });
        let pages = pages.unwrap();
        let wait = |now_ms| loop {
            match pages.look(now_ms) {
                Some(_) => return,
                None => thread::yield_now(),
            }
        };
        // Nobody waits for the thread, however often they ask.
        assert!((0..256).all(|now_ms| pages.look(now_ms).is_none()));
        begin.send(()).unwrap();
        wait(300);
        let last_ms = 255 + PAGES_KEPT_MS - 1;
        assert!((300..=last_ms).all(|now_ms| pages.look(now_ms).is_some()));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        // It is read again later, for those who ask then.
        assert_eq!(pages.look(10 * PAGES_KEPT_MS), None);
        begin.send(()).unwrap();
        wait(10 * PAGES_KEPT_MS);
        assert_eq!(reads.load(Ordering::Relaxed), 2);
    }
}

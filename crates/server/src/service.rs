//! What a service manager (systemd) is told: that the server is ready, reloads, stops, and that its
//! workers take their turns. Nothing is done without a `NOTIFY_SOCKET` in the environment.

use crate::stats::ServerAdmin;
use crate::web::{Watch, Watched};
use sd_notify::NotifyState;
use std::env;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The service manager, if there is one.
pub(crate) struct Service {
    is_there: bool,
    /// Reports until this is dropped.
    _watchdog: Option<Watchdog>,
}

/// The thread that reports while all workers take their turns. It ends when this is dropped.
struct Watchdog {
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// The server is ready. If the service manager wants to hear from it again and again, a thread
    /// begins to report.
    pub fn ready(status: &str, admin: &Arc<ServerAdmin>) -> io::Result<Service> {
        let is_there = env::var_os("NOTIFY_SOCKET").is_some();
        let watchdog = match sd_notify::watchdog_enabled().filter(|_| is_there) {
            Some(within) => Some(Watchdog::start(within, admin.clone())?),
            None => None,
        };
        let service = Service {
            is_there,
            _watchdog: watchdog,
        };
        service.tell(&[NotifyState::Ready, NotifyState::Status(status)]);
        Ok(service)
    }

    /// The settings are read again meanwhile.
    pub fn reload(&self, reload: impl FnOnce()) {
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            self.tell(&[NotifyState::Reloading, now]);
        }
        reload();
        self.tell(&[NotifyState::Ready]);
    }

    /// The server stops.
    pub fn stop(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        if self.is_there {
            tell(states);
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("NOTIFY_SOCKET: the service manager cannot be told: {error}");
    }
}

impl Watchdog {
    /// Reports as long as all workers take their turns, twice in the time `within` which the
    /// service manager wants to hear from the server.
    fn start(within: Duration, admin: Arc<ServerAdmin>) -> io::Result<Watchdog> {
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || {
                let (start, mut watch) = (Instant::now(), Watch::default());
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(within / 2) {
                    let Some(node) = admin.node() else { continue };
                    let now_ms = start.elapsed().as_millis() as u64;
                    let turns = node.tallies();
                    let watched = Watched {
                        silent_ms: watch.note(now_ms, turns.iter().map(|tally| tally.turns)),
                        ..Watched::default()
                    };
                    node.wake();
                    // A worker has had half of the time for a turn.
                    match watched.stalled().next() {
                        None => tell(&[NotifyState::Watchdog]),
                        Some((worker, silent_ms)) => tracing::warn!(
                            "worker {worker} has taken no turn for {silent_ms} ms: the service \
                             manager is not told that all is well"
                        ),
                    }
                }
            })?;
        Ok(Watchdog {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // It may have ended with a panic, which has been reported.
        let _ = self.end.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

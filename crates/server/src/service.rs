//! What a service manager (systemd) is told: that the server is ready, reloads, stops, and that its
//! workers take their turns. Nothing is done without a `NOTIFY_SOCKET` in the environment.

use crate::stats::ServerAdmin;
use crate::web::Watch;
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

/// How often the thread looks at the workers in the time in which the service manager wants to hear
/// from the server.
const LOOKS_WITHIN: u32 = 8;

/// What the thread sees when it looks at the workers again and again.
struct Rounds {
    watch: Watch,
    /// A worker that takes no turn for so long is stalled.
    stalled_ms: u64,
}

impl Rounds {
    /// A worker may take half of the time for a turn. The other half is left for the looks.
    fn new(within: Duration) -> Rounds {
        Rounds {
            watch: Watch::default(),
            stalled_ms: within.as_millis() as u64 / 2,
        }
    }

    /// The workers have taken this many turns each, and are woken now. Returns the one that has
    /// been silent for longest if it is stalled, and for how long it has been.
    fn look(&mut self, now_ms: u64, turns: impl Iterator<Item = u64>) -> Option<(usize, u64)> {
        let silent_ms = self.watch.note(now_ms, turns).into_iter().enumerate();
        let longest = silent_ms.max_by_key(|&(_, silent_ms)| silent_ms);
        longest.filter(|&(_, silent_ms)| silent_ms >= self.stalled_ms)
    }
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
    /// Reports as long as all workers take their turns, several times in the time `within` which
    /// the service manager wants to hear from the server.
    fn start(within: Duration, admin: Arc<ServerAdmin>) -> io::Result<Watchdog> {
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || {
                let (start, mut rounds) = (Instant::now(), Rounds::new(within));
                let mut has_complained = false;
                let step = within / LOOKS_WITHIN;
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(step) {
                    let Some(node) = admin.node() else { continue };
                    let now_ms = start.elapsed().as_millis() as u64;
                    let turns = node.tallies();
                    let stalled = rounds.look(now_ms, turns.iter().map(|tally| tally.turns));
                    node.wake();
                    if stalled.is_none() {
                        tell(&[NotifyState::Watchdog]);
                    }
                    if let Some((worker, silent_ms)) = stalled.filter(|_| !has_complained) {
                        tracing::warn!(
                            "worker {worker} has taken no turn for {silent_ms} ms: the service \
                             manager is not told that all is well"
                        );
                    }
                    has_complained = stalled.is_some();
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

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN_MS: u64 = 4_000;

    /// When the service manager hears that all is well, and who is stalled at the last look. A
    /// worker takes no turn between these two times.
    fn told(silent_ms: std::ops::Range<u64>) -> (Vec<u64>, Option<(usize, u64)>) {
        let mut rounds = Rounds::new(Duration::from_millis(WITHIN_MS));
        let (mut told, mut stalled) = (Vec::new(), None);
        for now_ms in (1..=24).map(|look| look * WITHIN_MS / u64::from(LOOKS_WITHIN)) {
            let last_turn = match silent_ms.contains(&now_ms) {
                true => silent_ms.start,
                false => now_ms,
            };
            stalled = rounds.look(now_ms, [now_ms, last_turn].into_iter());
            told.extend(stalled.is_none().then_some(now_ms));
        }
        (told, stalled)
    }

    #[test]
    fn a_worker_that_is_well_again_in_time_costs_no_restart() {
        for start in [2_001, 2_250, 2_499] {
            for length in [1_999, 2_000, 2_500, 3_000] {
                let (told, _) = told(start..start + length);
                let gaps = told.windows(2).map(|pair| pair[1] - pair[0]);
                assert!(
                    gaps.max() < Some(WITHIN_MS / 2),
                    "{start} {length}: {told:?}"
                );
                assert_eq!(told.last(), Some(&12_000));
            }
        }
    }

    #[test]
    fn a_worker_that_takes_no_more_turns_is_named_and_nothing_is_told() {
        let (told, stalled) = told(2_001..u64::MAX);
        assert_eq!(told.last(), Some(&4_000));
        assert_eq!(stalled, Some((1, 9_500)));
    }
}

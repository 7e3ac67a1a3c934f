//! The pages of `--http`, on a thread of their own.
//!
//! | path | shows |
//! | --- | --- |
//! | `/metrics` | the server's figures for Prometheus |
//! | `/healthz` | that the process answers |
//! | `/readyz` | whether every worker takes its turns and the server is not stopping |
//! | `/` | the dashboard |
//! | `/api/stats` | the figures as JSON |
//! | `/api/history` | the last hour as JSON |
//!
//! The thread takes no lock that a worker waits for: it reads counters that workers publish, and
//! texts that a worker leaves for it (`stats/told.rs`). It runs at a lower priority than they do.
//!
//! | file | idea |
//! | --- | --- |
//! | `pages` | what each path shows |
//! | `watch` | whether the workers take their turns |
//! | `json` | `/api/stats` |
//! | `history` | the last hour |
//! | `dashboard.html` | the dashboard, whole: it asks no other host for anything |

mod history;
mod json;
mod pages;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use glimmer_base::limits::{ALARM_MS, WORKER_WATCH_MS};
use glimmer_http::{Server, Waker};

use crate::stats::ServerAdmin;
use pages::Pages;
pub(crate) use watch::{Watch, Watched};

/// The priority of the thread among the others of the process: workers go first.
const NICE: i32 = 10;

/// The thread that serves the pages. It ends when this is dropped.
pub(crate) struct Web {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The server is stopping, and is not ready any more.
    is_draining: AtomicBool,
    /// The thread is to end.
    is_over: AtomicBool,
}

impl Web {
    /// Begins to serve the pages of a server.
    pub fn start(mut server: Server, admin: Arc<ServerAdmin>) -> io::Result<Web> {
        let shared = Arc::<Shared>::default();
        let waker = server.waker();
        let mut pages = Pages::new(admin, &server.addresses());
        let state = shared.clone();
        let thread = thread::Builder::new().name("http".into()).spawn(move || {
            // If it has no effect, the thread shares the CPU as all do.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
            let mut complains_from = Instant::now();
            while !state.is_over.load(Ordering::Acquire) {
                let is_draining = state.is_draining.load(Ordering::Relaxed);
                let wait_ms = pages.look_around(is_draining).min(WORKER_WATCH_MS);
                server.turn(wait_ms, &mut |request| pages.answer(request));
                if let Some(error) = server.take_accept_error()
                    && Instant::now() >= complains_from
                {
                    tracing::warn!("--http: connections cannot be accepted for now: {error}");
                    complains_from = Instant::now() + Duration::from_millis(ALARM_MS);
                }
            }
        })?;
        Ok(Web {
            shared,
            waker,
            thread: Some(thread),
        })
    }

    /// The server is stopping: `/readyz` says so from now on.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported, and ends nothing else.
            let _ = thread.join();
        }
    }
}

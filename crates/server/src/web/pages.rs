//! What each path shows.

use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_http::{Reply, Request, Status};
use glimmer_node::NodeFigures;

use super::history::History;
use super::json;
use super::watch::{Watch, Watched};
use crate::metrics::{self, Rising, Source};
use crate::stats::ServerAdmin;

/// The pages of a server.
pub(super) struct Pages {
    admin: Arc<ServerAdmin>,
    /// Only programs of this machine can connect. A browser may do so for a page of a foreign site,
    /// which is told by the name that it gives the server.
    is_local: bool,
    watch: Watch,
    watched: Watched,
    history: History,
    rising: Arc<Rising>,
}

/// The dashboard.
const DASHBOARD: &str = include_str!("dashboard.html");

impl Pages {
    pub fn new(admin: Arc<ServerAdmin>, addresses: &[SocketAddr]) -> Pages {
        Pages {
            admin,
            is_local: addresses.iter().all(|address| address.ip().is_loopback()),
            watch: Watch::default(),
            watched: Watched::default(),
            history: History::default(),
            rising: Arc::default(),
        }
    }

    /// Looks at the workers if it is time to. Returns how long there is nothing to do.
    pub fn look_around(&mut self, is_draining: bool) -> u64 {
        self.watched.is_draining = is_draining;
        let node = self.admin.node();
        let now_ms = node.map_or(0, |node| node.now().ms);
        if self.watch.is_due(now_ms) {
            let tallies = node.map_or_else(Vec::new, NodeFigures::tallies);
            let turns = tallies.iter().map(|tally| tally.turns);
            self.watched.silent_ms = self.watch.note(now_ms, turns);
            if let Some(node) = node {
                node.wake();
            }
        }
        if self.history.is_due(now_ms) {
            let now = self.source();
            self.history.note(&now);
        }
        self.watch.wait_ms(now_ms).max(1)
    }

    pub fn answer(&mut self, request: &Request<'_>) -> Reply {
        self.watched.requests += 1;
        if self.is_local && !request.names_an_address() {
            let reason = "use an address or localhost: these pages are for this machine only";
            return Reply::text(Status::Forbidden, reason);
        }
        match request.path {
            "/metrics" => {
                let shown = metrics::expose(Arc::new(self.source()), request.accept);
                Reply {
                    status: Status::Ok,
                    content_type: shown.content_type,
                    body: shown.text.into_bytes().into(),
                }
            }
            "/healthz" => Reply::text(Status::Ok, "ok"),
            "/readyz" => self.readiness(),
            "/api/stats" => Reply {
                status: Status::Ok,
                content_type: "application/json",
                body: json::stats(&self.source()).into(),
            },
            "/" => Reply {
                status: Status::Ok,
                content_type: "text/html; charset=utf-8",
                body: DASHBOARD.as_bytes().into(),
            },
            "/api/history" => {
                let after_ms = request.parameter("after").and_then(|ms| ms.parse().ok());
                Reply {
                    status: Status::Ok,
                    content_type: "application/json",
                    body: self
                        .history
                        .show(after_ms.unwrap_or(0))
                        .to_string()
                        .into_bytes()
                        .into(),
                }
            }
            _ => Reply::text(
                Status::NotFound,
                "there are /, /metrics, /healthz, /readyz, /api/stats and /api/history",
            ),
        }
    }

    fn source(&self) -> Source {
        Source {
            figures: self.admin.figures(),
            watched: self.watched.clone(),
            rising: self.rising.clone(),
        }
    }

    fn readiness(&self) -> Reply {
        if self.watched.is_ready() {
            return Reply::text(Status::Ok, "ready");
        }
        let stalled = self.watched.stalled().map(|(worker, silent_ms)| {
            let seconds = silent_ms as f64 / 1e3;
            format!("worker {worker} has taken no turn for {seconds:.1} s")
        });
        let mut reasons: Vec<String> = stalled.collect();
        if self.watched.is_draining {
            reasons.insert(0, "the server is stopping".into());
        }
        Reply::text(
            Status::Unavailable,
            format!("not ready: {}", reasons.join(", ")),
        )
    }
}

//! `/metrics`: the server's figures as Prometheus and OpenMetrics have them.
//!
//! A metric is one row of a table: its name without the suffixes of its unit and kind, its unit,
//! its kind, a help text, and what gives its samples. docs/metrics.md has a row for each metric; a
//! test prints the rows that it lacks. Labels are bounded: they name workers, commands, outcomes,
//! reasons and size classes, and never keys or clients.
//!
//! | file | idea |
//! | --- | --- |
//! | `family` | a metric, and how it is encoded |
//! | `requests`, `latency`, `store`, `network`, `packets`, `tls`, `workers`, `process` | metrics |

mod family;
mod latency;
mod network;
mod packets;
mod process;
mod requests;
mod store;
#[cfg(test)]
mod tests;
mod tls;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stats::ServerFigures;
use crate::web::Watched;
pub(crate) use family::{Family, Value};

/// What the samples are taken from.
#[derive(Debug)]
pub(crate) struct Source {
    pub figures: ServerFigures,
    /// What the thread that serves the pages has seen itself.
    pub watched: Watched,
    pub rising: Arc<Rising>,
}

/// Counters that are differences of others. The others become visible one after another, so that a
/// difference may be too large for a moment. What was shown is not taken back: Prometheus would
/// take that for a restart.
#[derive(Debug, Default)]
pub(crate) struct Rising {
    pub closed_otherwise: Highest,
    pub evicted_from_memory: Highest,
}

/// The highest value that was shown.
#[derive(Debug, Default)]
pub(crate) struct Highest(AtomicU64);

impl Highest {
    /// The value now, or a higher one that was shown before.
    pub fn at_least(&self, value: u64) -> u64 {
        self.0.fetch_max(value, Ordering::Relaxed).max(value)
    }
}

/// Every metric, in the order in which they are shown.
pub(crate) fn families() -> impl Iterator<Item = &'static Family> {
    let tables = [
        process::ALL,
        requests::ALL,
        latency::ALL,
        store::ALL,
        network::ALL,
        packets::ALL,
        tls::ALL,
        workers::ALL,
    ];
    tables.into_iter().flatten()
}

/// The text that a scraper gets.
pub(crate) struct Exposition {
    pub content_type: &'static str,
    pub text: String,
}

/// The metrics in the format that a scraper accepts: OpenMetrics if it asks for that, and otherwise
/// the text of Prometheus.
pub(crate) fn expose(source: Arc<Source>, accept: &str) -> Exposition {
    let registry = family::registry(source);
    let mut text = String::new();
    let (content_type, encoded) = match accept.contains("application/openmetrics-text") {
        true => (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            prometheus_client::encoding::text::encode(&mut text, &registry),
        ),
        false => (
            "text/plain; version=0.0.4; charset=utf-8",
            prometheus_client::encoding::prometheus_text::encode(&mut text, &registry),
        ),
    };
    encoded.expect("memory takes every byte");
    Exposition { content_type, text }
}

//! Log lines on stderr: warnings always, more with `-v` and `verbosity`. Nothing is ever logged per request.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::time::Uptime;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, registry, reload};

/// What this many `-v` let through.
fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    }
}

/// Starts logging; what is returned changes the verbosity later.
pub fn start(verbosity: u32) -> Box<dyn Fn(u32) + Send + Sync> {
    let (filter, handle) = reload::Layer::new(level(verbosity));
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_timer(Uptime::default())
        .with_target(false);
    // A program that has set up its own logging keeps it.
    let _ = registry().with(filter).with(lines).try_init();
    Box::new(move |verbosity| {
        // Fails only when the subscriber is gone, and with it the log.
        let _ = handle.reload(level(verbosity));
    })
}

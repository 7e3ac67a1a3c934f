//! What a service manager (systemd) is asked while the server loads or writes much: more time.
//! Nothing is done without a `NOTIFY_SOCKET` in the environment.

use sd_notify::NotifyState;
use std::env;
use std::time::{Duration, Instant};

/// How long the service manager waits once more for a server that starts or stops.
const EXTENSION_US: u32 = 30_000_000;

/// The server needs more time to start or to stop. Nothing is done without a service manager.
pub(crate) fn extend() {
    if env::var_os("NOTIFY_SOCKET").is_some() {
        // Without an answer, it waits as long as it would have.
        let _ = sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(EXTENSION_US)]);
    }
}

/// Asks the service manager for more time now and then.
#[derive(Default)]
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    /// The server has something left to do.
    pub fn ask(&mut self) {
        let every = Duration::from_micros(EXTENSION_US.into()) / 6;
        if self.0.is_none_or(|asked| asked.elapsed() >= every) {
            self.0 = Some(Instant::now());
            extend();
        }
    }
}

//! Samples the resident memory of a server.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use super::Subject;

/// Interval between two samples.
const INTERVAL: Duration = Duration::from_millis(10);

/// Samples the resident memory of a server on this machine.
pub(super) struct Sampler<'a> {
    subject: &'a Subject,
}

impl<'a> Sampler<'a> {
    pub fn new(subject: &'a Subject) -> Sampler<'a> {
        Sampler { subject }
    }

    /// The maximum resident memory in bytes until `stop` is true; `None` if the server's memory
    /// cannot be read.
    pub fn peak_until(&self, stop: &AtomicBool) -> Option<u64> {
        let mut peak = self.subject.resident_bytes()?;
        while !stop.load(Relaxed) {
            std::thread::sleep(INTERVAL);
            peak = peak.max(self.subject.resident_bytes().unwrap_or(0));
        }
        Some(peak)
    }
}

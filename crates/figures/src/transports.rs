//! What is between servers and clients in different network namespaces.

use std::{fmt, sync::Arc};

use anyhow::Result;
use glimmer_base::sync::Mutex;
use glimmer_comparisons::transports::Between;

/// The transports that figures have used so far, which stay: a process can have one of them only
/// once.
#[derive(Default)]
pub struct Transports(Mutex<Vec<(&'static str, Arc<Between>)>>);

impl fmt::Debug for Transports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock();
        let kinds = known.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
        out.debug_tuple("Transports").field(&kinds).finish()
    }
}

impl Transports {
    /// The transport of this kind: udp, udp-plain, xdp or dpdk.
    ///
    /// # Errors
    ///
    /// This machine cannot have it, or the program was built without it.
    pub fn of_kind(&self, kind: &'static str) -> Result<Arc<Between>> {
        let mut known = self.0.lock();
        if let Some((_, between)) = known.iter().find(|(known, _)| *known == kind) {
            return Ok(between.clone());
        }
        let between = Arc::new(Between::of_kind(kind)?);
        known.push((kind, between.clone()));
        Ok(between)
    }
}

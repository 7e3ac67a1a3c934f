//! The list of servers that `config get cluster` shows.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use glimmer_proto::text::{Cluster, lines};

/// What an operator has stored for clients that look for servers, as it is shown. Bounded by
/// [`CLUSTER_BYTES_MAX`](glimmer_base::limits::CLUSTER_BYTES_MAX). It is gone when the server ends.
///
/// Clients ask about once a minute, so a lock suffices.
#[derive(Debug, Default)]
pub(crate) struct StoredCluster(Mutex<Option<Box<[u8]>>>);

impl StoredCluster {
    fn lock(&self) -> MutexGuard<'_, Option<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a configuration in place of the one before.
    pub fn set(&self, cluster: &Cluster<'_>) {
        let mut shown = Vec::new();
        cluster.write(&mut shown);
        *self.lock() = Some(shown.into());
    }

    /// Forgets it. Returns whether there was one.
    pub fn delete(&self) -> bool {
        self.lock().take().is_some()
    }

    /// Appends the reply of hosted memcached: like that to a `get`, with another first word.
    pub fn show(&self, out: &mut Vec<u8>) {
        if let Some(shown) = self.lock().as_deref() {
            write!(out, "CONFIG cluster 0 {}\r\n", shown.len()).expect("a vector takes all bytes");
            out.extend_from_slice(shown);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(lines::END.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stored: &StoredCluster) -> String {
        let mut out = Vec::new();
        stored.show(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// The example of hosted memcached's documentation, which has the same lengths.
    #[test]
    fn the_reply_is_that_of_hosted_memcached() {
        let stored = StoredCluster::default();
        assert_eq!(shown(&stored), "END\r\n");
        assert!(!stored.delete());
        let servers = "myCluster.pc4ldq.0001.use1.cache.amazonaws.com|10.82.235.120|11211 \
                       myCluster.pc4ldq.0002.use1.cache.amazonaws.com|10.80.249.27|11211";
        let text = format!("12\n{servers}\n");
        stored.set(&Cluster::parse(text.as_bytes()).unwrap());
        let reply = format!("CONFIG cluster 0 136\r\n12\n{servers}\n\r\nEND\r\n");
        assert_eq!(text.len(), 136);
        assert_eq!(shown(&stored), reply);
        assert!(stored.delete());
        assert_eq!(shown(&stored), "END\r\n");
    }
}

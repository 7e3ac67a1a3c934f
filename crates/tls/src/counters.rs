//! What is counted of all connections together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What is counted of all connections together.
#[derive(Debug)]
pub struct Counters {
    new_sessions: AtomicU64,
    resumed: AtomicU64,
    handshake_errors: AtomicU64,
    protocol_errors: AtomicU64,
    renewals: AtomicU64,
    renewal_errors: AtomicU64,
    refusals: AtomicU64,
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// A counter, by the name of what it counts.
macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident, $note:ident;)*) => {
        impl Counters {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> u64 {
                    self.$name.load(Ordering::Relaxed)
                }

                pub(crate) fn $note(&self) {
                    self.$name.fetch_add(1, Ordering::Relaxed);
                }
            )*
        }
    };
}

counted! {
    /// Handshakes that ended well with a new session.
    new_sessions, note_new_session;
    /// Handshakes that resumed an earlier session.
    resumed, note_resumed;
    /// Handshakes that failed, or that the client or a deadline ended.
    handshake_errors, note_handshake_error;
    /// Connections whose records were wrong after the handshake.
    protocol_errors, note_protocol_error;
    /// Times that certificates were renewed.
    renewals, note_renewal;
    /// Times that they were not, because something was wrong with them.
    renewal_errors, note_renewal_error;
    /// Connections that were closed because all of them together held as much memory as they may.
    refusals, note_refusal;
}

impl Counters {
    /// Counters of connections that together hold at most this many bytes.
    pub(crate) fn new(bytes_max: usize) -> Counters {
        Counters {
            new_sessions: AtomicU64::default(),
            resumed: AtomicU64::default(),
            handshake_errors: AtomicU64::default(),
            protocol_errors: AtomicU64::default(),
            renewals: AtomicU64::default(),
            renewal_errors: AtomicU64::default(),
            refusals: AtomicU64::default(),
            bytes: AtomicUsize::default(),
            bytes_max,
        }
    }

    /// A worker has closed a connection for the memory that it held.
    pub fn note_closed(&self) {
        self.note_refusal();
    }

    /// The most of them.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether connections hold more than they may.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    /// Bytes of memory that connections hold for TLS.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A connection that held `before` bytes now holds `after`.
    pub(crate) fn recharge(&self, before: usize, after: usize) {
        // Wraps around where less is held than before.
        let change = after.wrapping_sub(before);
        self.bytes.fetch_add(change, Ordering::Relaxed);
    }
}

//! Takes memory from encrypted connections that make no progress, when all of them together hold
//! almost as much as they may.
//!
//! A stream that encrypts keeps the part of a record that has arrived, and records that its peer
//! does not take. At the limit, a stream that asks for more fails, also one that is new. So what is
//! held for longest is taken before that.

use glimmer_base::limits::{
    STALLED_MS_MAX, STALLED_MS_MIN, TLS_RECORD_BYTES_MAX, TLS_SEARCH_MS_MIN,
};

use super::Streams;
use super::key::ConnectionKey;
use crate::core::Core;

/// The part of the limit (1 / n) that is left when memory begins to be taken, until twice as much
/// is left.
const SCARCE_SHARE: usize = 8;

/// The most bytes that are left then. What idle connections take, which is most of the limit where
/// there may be many, is no reason to close others.
const SCARCE_BYTES_MAX: usize = 32 * TLS_RECORD_BYTES_MAX;

/// What a worker knows of its connections whose streams hold memory of their own.
#[derive(Default)]
pub(super) struct Encrypted {
    /// There may be some.
    pub may_hold: bool,
    /// When they were last searched for, in milliseconds since the epoch.
    searched_ms: u64,
}

impl Streams {
    /// Whether there may be connections whose streams hold memory of their own.
    #[inline]
    pub fn may_hold_encrypted(&self) -> bool {
        self.encrypted.may_hold
    }

    /// Looks whether there still are such connections.
    pub fn look_for_encrypted(&mut self) {
        if self.encrypted.may_hold {
            let mut connections = self.connections.values();
            self.encrypted.may_hold = connections.any(|it| it.stream.held_bytes() > 0);
        }
    }

    /// While memory for encryption is scarce, closes those that have held some of it without
    /// progress for longest, and before them those that have shaken hands for as long. The less is
    /// left, the less time they have.
    #[cold]
    pub fn bound_encrypted(&mut self, core: &mut Core) {
        let Some(encryption) = core.shared.config.encryption.clone() else {
            return;
        };
        let (now_ms, most) = (core.now.ms, encryption.bytes_max());
        let free = most.saturating_sub(encryption.bytes());
        let scarce = (most / SCARCE_SHARE).min(SCARCE_BYTES_MAX);
        if free >= scarce || now_ms - self.encrypted.searched_ms < TLS_SEARCH_MS_MIN {
            return;
        }
        self.encrypted.searched_ms = now_ms;
        let stalled_ms = STALLED_MS_MAX * free as u64 / scarce as u64;
        let stalled_ms = stalled_ms.max(STALLED_MS_MIN);
        let is_enough = || encryption.bytes() <= most - 2 * scarce;
        while !is_enough() && self.close_oldest_handshake(stalled_ms, core) {
            encryption.note_closed();
        }
        let stalled = self.connections.iter().filter_map(|(key, connection)| {
            let ms = connection.encrypted_stalled_ms(now_ms)?;
            (ms >= stalled_ms).then_some((ms, key))
        });
        let mut stalled: Vec<(u64, ConnectionKey)> = stalled.collect();
        stalled.sort_unstable_by(|a, b| b.cmp(a));
        for (_, key) in stalled {
            if is_enough() {
                break;
            }
            encryption.note_closed();
            self.close(key, core);
        }
    }
}

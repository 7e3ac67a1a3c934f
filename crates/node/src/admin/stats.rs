//! A worker's counters. It counts in plain integers and publishes them once per turn, so that
//! counting needs no atomics.

use crossbeam_utils::CachePadded;
use glimmer_base::sync::{AtomicU64, Ordering};

use super::alarm::Failure;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one worker, or the sum over all of them. They are cumulative since the
        /// start, except those marked as states.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        struct Shown {
            $($name: AtomicU64,)*
        }

        impl Shown {
            fn store(&self, tally: &Tally) {
                $(self.$name.store(tally.$name, Ordering::Relaxed);)*
            }

            fn load(&self) -> Tally {
                Tally { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Tally {
            /// The difference to an earlier tally. That of a state has no meaning.
            pub fn since(&self, earlier: &Tally) -> Tally {
                Tally { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }

        impl std::ops::AddAssign for Tally {
            fn add_assign(&mut self, other: Tally) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// State: open connections.
    curr_connections,
    /// Connections accepted and served.
    total_connections,
    /// Connections refused because there were too many.
    rejected_connections,
    /// How often accepting stopped because the maximum number of connections was reached.
    listen_disabled,
    /// Milliseconds for which accepting stopped for that reason.
    listen_disabled_ms,
    /// Connections closed because they were idle for too long.
    idle_kicks,
    /// Connections closed because they held memory without progress while others needed it.
    stalled_kicks,
    /// Connections closed because their handshakes took too long.
    handshake_kicks,
    /// Connections closed because their clients broke the protocol or gave too many wrong logins.
    error_kicks,
    /// Values refused for lack of buffer memory.
    values_refused,
    /// Connections that had to wait for a place for a large value.
    uploads_postponed,
    /// How often a connection could not be accepted.
    accept_failures,
    /// Datagrams received.
    datagrams_received,
    /// Datagrams sent.
    datagrams_sent,
    /// Datagrams that could not be sent.
    datagrams_unsent,
    /// Datagrams that the kernel dropped before they were received.
    datagrams_overflowed,
    /// Datagrams that were not requests and got no reply.
    datagrams_dropped,
    /// Datagrams received from native clients; included in [`Tally::datagrams_received`].
    native_datagrams,
    /// System calls that received them.
    native_receives,
    /// Datagrams of native clients forwarded to the owner of their keys.
    native_handed_over,
    /// Batches of such datagrams.
    native_handover_batches,
    /// Requests of native clients executed; included in [`Tally::requests`].
    native_requests,
    /// Requests of native clients refused because their directory is outdated, or because another
    /// worker owns the key.
    native_misdirected,
    /// Mutations of native clients refused because the client's address is not validated.
    native_unproven,
    /// Mutations of native clients that had been executed before.
    native_repeated,
    /// Mutations of native clients that arrived after a newer one of their key.
    native_superseded,
    /// Replies to native clients that were written over their requests.
    native_in_place,
    /// Expired items that crawls removed.
    crawler_reclaimed,
    /// Items that crawls examined.
    crawler_items_checked,
    /// Bytes received from clients.
    bytes_read,
    /// Bytes sent to clients.
    bytes_written,
    /// How often a connection had to let others go first.
    conn_yields,
    /// Attempts to authenticate.
    auth_cmds,
    /// Failed attempts to authenticate.
    auth_errors,
    /// `flush_all` commands.
    cmd_flush,
    /// Requests executed on the worker that received them.
    requests,
    /// Batches of such requests.
    batches,
    /// Requests forwarded to the worker that owns their key.
    requests_crossed,
    /// Connections that visited another worker for a large request.
    visits,
    /// Connections that waited in this worker's software queue for any worker to take them.
    handed_on,
    /// Connections that this worker took from the software queue of another one.
    taken,
    /// Datagrams that this worker took from the RX queues of other ones.
    drained,
    /// Connections that moved to another worker, because the plan made that one their home.
    moved,
    /// Forwarded batches sent.
    forwarded_batches_sent,
    /// Forwarded batches of other workers executed here.
    forwarded_batches_run,
    /// Turns of the worker's loop.
    turns,
    /// State: buffers of connections, including unused ones.
    buffers,
    /// State: bytes of buffers, including batches.
    buffer_bytes,
    /// State: bytes of unused buffers.
    buffer_bytes_free,
}

impl Tally {
    /// The count of failures of one kind.
    pub(crate) fn failures(&mut self, of: Failure) -> &mut u64 {
        match of {
            Failure::Accept => &mut self.accept_failures,
            Failure::Send => &mut self.datagrams_unsent,
            Failure::Overflow => &mut self.datagrams_overflowed,
            Failure::Login => &mut self.auth_errors,
        }
    }
}

/// The counters of one worker as other threads see them.
#[derive(Debug, Default)]
pub struct WorkerStats(CachePadded<Shown>);

impl WorkerStats {
    /// The counters as of the worker's last turn. Each is exact; together they are not a consistent
    /// snapshot.
    pub fn snapshot(&self) -> Tally {
        self.0.load()
    }

    /// Publishes new counters.
    pub(crate) fn publish(&self, tally: &Tally) {
        self.0.store(tally);
    }
}

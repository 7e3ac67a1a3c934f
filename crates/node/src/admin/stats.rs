//! What a worker counts. It counts in plain integers and shows them once per turn, so that counting
//! costs no atomics.

use crossbeam_utils::CachePadded;
use glimmer_base::sync::{AtomicU64, Ordering};

use super::alarm::Failure;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Figures of one worker, or of all of them summed, cumulative since start unless they are
        /// states.
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

        impl std::ops::AddAssign for Tally {
            fn add_assign(&mut self, other: Tally) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// State: connections that are open.
    curr_connections,
    /// Connections accepted and served.
    total_connections,
    /// Connections turned away because there were too many.
    rejected_connections,
    /// Times that listening stopped because there were as many connections as there may be.
    listen_disabled,
    /// Milliseconds for which listening stopped for that reason.
    listen_disabled_ms,
    /// Connections closed because they were idle for too long.
    idle_kicks,
    /// Connections closed because they held memory without headway while others starved.
    stalled_kicks,
    /// Values refused for lack of buffer memory.
    values_refused,
    /// Times that a connection could not be accepted.
    accept_failures,
    /// Datagrams received.
    datagrams_received,
    /// Datagrams sent.
    datagrams_sent,
    /// Datagrams that could not be sent.
    datagrams_unsent,
    /// Datagrams that the kernel dropped before they were received.
    datagrams_overflowed,
    /// Datagrams that were no request, and had no answer.
    datagrams_dropped,
    /// Datagrams received from native clients; [`Tally::datagrams_received`] has them, too.
    native_datagrams,
    /// System calls that brought them.
    native_receives,
    /// Datagrams of native clients handed over to the worker that owns their keys.
    native_handed_over,
    /// Batches in which they were.
    native_handover_batches,
    /// Requests of native clients executed; [`Tally::requests`] has them, too.
    native_requests,
    /// Requests of native clients refused because their directory is another, or because another
    /// worker owns the key.
    native_misdirected,
    /// Mutations of native clients refused because the client has not shown that it owns its
    /// address.
    native_unproven,
    /// Mutations of native clients that had been executed before.
    native_repeated,
    /// Mutations of native clients that came after a newer one of their key.
    native_superseded,
    /// Replies to native clients that were written over their requests.
    native_in_place,
    /// Expired items that were removed because a client asked for a crawl.
    crawler_reclaimed,
    /// Items that crawls looked at.
    crawler_items_checked,
    /// Bytes received from clients.
    bytes_read,
    /// Bytes sent to clients.
    bytes_written,
    /// Times a connection had to let others go first.
    conn_yields,
    /// Times that a client tried to authenticate.
    auth_cmds,
    /// Times that it could not.
    auth_errors,
    /// `flush_all` commands.
    cmd_flush,
    /// Requests executed on the worker that received them.
    requests,
    /// Batches in which they were executed.
    batches,
    /// Requests that crossed over to the worker that owns their key.
    requests_crossed,
    /// Forwarded batches in which they crossed.
    forwarded_batches_sent,
    /// Forwarded batches of other workers that were executed here.
    forwarded_batches_run,
    /// Turns of the worker's loop.
    turns,
    /// State: buffers of connections, and those that nobody uses.
    buffers,
    /// State: bytes of buffers, batches included.
    buffer_bytes,
    /// State: bytes of those buffers that nobody uses.
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

/// One worker's figures as other threads see them.
#[derive(Debug, Default)]
pub struct WorkerStats(CachePadded<Shown>);

impl WorkerStats {
    /// The figures as of the worker's last turn. Each is right by itself; together they are not of
    /// one instant.
    pub fn snapshot(&self) -> Tally {
        self.0.load()
    }

    /// Shows new figures.
    pub(crate) fn publish(&self, tally: &Tally) {
        self.0.store(tally);
    }
}

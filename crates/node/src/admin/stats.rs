//! A worker's counters. It counts in plain integers and publishes them once per turn, so that
//! counting needs no atomics.

use crossbeam_utils::CachePadded;
use glimmer_base::sync::{AtomicU64, Ordering};

use super::alarm::Failure;

macro_rules! counters {
    (
        often { $($(#[$often_doc:meta])* $often:ident,)* }
        rarely { $($(#[$doc:meta])* $name:ident,)* }
    ) => {
        /// Counters of one worker, or the sum over all of them. They are cumulative since the
        /// start, except those marked as states.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[$often_doc])* pub $often: u64,)*
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters as their worker counts them.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $($(#[$often_doc])* pub $often: u64,)*
            rare: RareCounts,
            /// Whether one of the rare ones may have changed since all were published.
            is_changed: bool,
        }

        /// Those that hardly any turn changes.
        #[derive(Debug, Default)]
        pub(crate) struct RareCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        struct Shown {
            $($often: AtomicU64,)*
            $($name: AtomicU64,)*
        }

        impl Shown {
            #[inline]
            fn store(&self, counts: &mut Counts) {
                $(self.$often.store(counts.$often, Ordering::Relaxed);)*
                if std::mem::take(&mut counts.is_changed) {
                    self.store_rare(&counts.rare);
                }
            }

            #[inline(never)]
            fn store_rare(&self, counts: &RareCounts) {
                $(self.$name.store(counts.$name, Ordering::Relaxed);)*
            }

            fn load(&self) -> Tally {
                Tally {
                    $($often: self.$often.load(Ordering::Relaxed),)*
                    $($name: self.$name.load(Ordering::Relaxed),)*
                }
            }
        }

        impl Tally {
            /// The difference to an earlier tally. That of a state has no meaning.
            pub fn since(&self, earlier: &Tally) -> Tally {
                Tally {
                    $($often: self.$often.wrapping_sub(earlier.$often),)*
                    $($name: self.$name.wrapping_sub(earlier.$name),)*
                }
            }
        }

        impl std::ops::AddAssign for Tally {
            fn add_assign(&mut self, other: Tally) {
                $(self.$often += other.$often;)*
                $(self.$name += other.$name;)*
            }
        }
    };
}

/// The rare counters are reached as if they were its own. Who may change one is noted, so that the
/// others need not be published at the end of each turn.
impl std::ops::Deref for Counts {
    type Target = RareCounts;

    #[inline]
    fn deref(&self) -> &RareCounts {
        &self.rare
    }
}

impl std::ops::DerefMut for Counts {
    #[inline]
    fn deref_mut(&mut self) -> &mut RareCounts {
        self.is_changed = true;
        &mut self.rare
    }
}

counters! {
    often {
        /// Bytes received from clients.
        bytes_read,
        /// Bytes sent to clients.
        bytes_written,
        /// Requests executed on the worker that received them.
        requests,
        /// Batches of such requests.
        batches,
        /// Turns of the worker's loop.
        turns,
        /// State: buffers of connections, including unused ones.
        buffers,
        /// State: bytes of buffers, including batches.
        buffer_bytes,
        /// State: bytes of unused buffers.
        buffer_bytes_free,
    }
    rarely {
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
        /// Connections closed because their clients broke the protocol or gave too many wrong
        /// logins.
        error_kicks,
        /// Values refused for lack of buffer memory.
        values_refused,
        /// Connections that had to wait for a place for a large value.
        uploads_postponed,
        /// How often a connection could not be accepted.
        accept_failures,
        /// Nanoseconds of those turns of a worker that never sleeps in which it received or sent
        /// something, or worked for another worker.
        polling_busy_ns,
        /// Datagrams received.
        datagrams_received,
        /// Datagrams sent.
        datagrams_sent,
        /// Datagrams that could not be sent.
        datagrams_unsent,
        /// Datagrams that the kernel or the NIC dropped before they were received.
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
        /// Requests of native clients refused because their directory is outdated, or because
        /// another worker owns the key.
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
        /// How often a connection had to let others go first.
        conn_yields,
        /// Attempts to authenticate.
        auth_cmds,
        /// Those of them that ended well.
        auth_admitted,
        /// Failed attempts to authenticate.
        auth_errors,
        /// Connections closed because their user had as many as it may.
        user_connections_refused,
        /// Connections closed because their address had as many as it may.
        address_connections_refused,
        /// How often a connection waited because its user or its address was over a limit.
        throttled,
        /// Requests refused because their connection had waited for that as long as it may.
        requests_over_limit,
        /// Requests and commands denied because their user has no right to them.
        requests_denied,
        /// `flush_all` commands.
        cmd_flush,
        /// Groups of keys that were invalidated.
        prefix_flushes,
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
    }
}

impl RareCounts {
    /// The count of failures of one kind.
    pub fn failures(&mut self, of: Failure) -> &mut u64 {
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
    #[inline]
    pub(crate) fn publish(&self, counts: &mut Counts) {
        self.0.store(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_what_was_counted() {
        let (stats, mut counts) = (WorkerStats::default(), Counts::default());
        for turn in 1..=10 {
            counts.turns = turn;
            counts.conn_yields += turn % 3;
            *counts.failures(Failure::Login) += turn % 2;
            stats.publish(&mut counts);
            let shown = stats.snapshot();
            assert_eq!(shown.turns, turn);
            assert_eq!(shown.conn_yields, counts.conn_yields);
            assert_eq!(shown.auth_errors, turn.div_ceil(2));
        }
    }
}

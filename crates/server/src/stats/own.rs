//! `stats glimmer`: statistics that memcached does not have.
//!
//! A statistic is one row of [`SERVER`] or of [`WORK`]. The rows of `WORK` also appear in `stats
//! workers`, once for each worker. docs/statistics.md has a row for each statistic; a test prints
//! the rows that it lacks.

use super::lines::Lines;
use super::{Snapshot, count};
use glimmer_node::Tally;
use glimmer_store::evict::{Learned, SETTINGS};

/// A statistic: its name, its meaning for operators, and a function for its value, which hides the
/// statistic by None.
type Statistic<Value> = (&'static str, &'static str, Value);
type OfServer = fn(&Snapshot<'_>) -> Option<String>;
type OfWork = fn(&Tally) -> Option<String>;

/// Settings and states of the server, and counters of its tables since the last `stats reset`.
#[rustfmt::skip]
const SERVER: &[Statistic<OfServer>] = &[
    ("mode", "`cache`, or `store`, in which nothing is evicted",
        |now| show(now.admin.config.mode)),
    ("access", "the access mode of the tables: that of `--access`, or `erew` with one worker",
        |now| show(now.admin.access())),
    ("table", "the data structure of a partition (`--table`)",
        |now| show(now.admin.config.table)),
    ("evict", "the eviction rule, `none` in store mode",
        |now| show(now.admin.config.eviction())),
    ("evict_for", "what `--evict adaptive` is to find the most of",
        |now| learned(now).map(|_| now.admin.config.evict_for.to_string())),
    ("evict_setting", "the setting that `--evict adaptive` has chosen",
        |now| learned(now).map(|it| SETTINGS[it.in_use].0.to_string())),
    ("evict_changes", "how often it chose another one",
        |now| learned(now).map(|it| it.changes.to_string())),
    ("evict_estimates", "for each setting, the hit ratio of a simulated cache with it, on recent \
        reads of a sample of the keys. A setting replaces another one when it leads by more than \
        0.0015",
        |now| learned(now)?.found.map(estimates)),
    ("evict_keys_followed", "keys of that sample",
        |now| learned(now).map(|it| it.keys.to_string())),
    ("evict_followed_one_in", "the sample holds one of this many keys",
        |now| learned(now).map(|it| it.one_in.to_string())),
    ("item_usual_bytes", "the geometric mean of the sizes of the items that were stored of late, \
        to which `--evict adaptive` compares sizes",
        |now| learned(now).map(|it| it.usual_bytes.to_string())),
    ("partitions", "partitions of the store",
        |now| show(now.admin.plan.partitions)),
    ("log_bytes", "memory for items, in bytes",
        |now| show(now.now.table.log_bytes)),
    ("buffer_bytes", "memory for requests and replies now, in bytes",
        |now| show(now.now.node.buffer_bytes)),
    ("uploads", "large values that are being received where they will lie in memory for items, \
        and places that keep commands of transactions there",
        |now| show(now.now.table.uploads.count)),
    ("upload_bytes", "bytes of these values and places, whether they have arrived or not",
        |now| show(now.now.table.uploads.bytes)),
    ("index_evictions", "items evicted because their bucket of the index was full",
        |now| show(count!(now, table.store.index_evictions))),
    ("index_spare_buckets_used", "buckets of the index in use as extensions of full ones",
        |now| show(now.now.table.store.spares_used)),
    ("stale_entries_removed", "entries of the index removed because their item was overwritten",
        |now| show(count!(now, table.store.stale_removed))),
    ("stores_refused", "stores that the table refused",
        |now| show(count!(now, table.store.refused))),
    ("items_overflowed", "items stored in the chain of a second hash because that of the first was \
        full, in store mode",
        |now| show(count!(now, table.store.overflowed))),
    ("items_moved", "items moved to join free memory, in store mode",
        |now| show(count!(now, table.store.moved))),
    ("index_buckets_added", "buckets by which the index grew",
        |now| show(count!(now, table.store.buckets_added))),
    ("index_buckets_merged", "buckets by which the index shrank",
        |now| show(count!(now, table.store.buckets_merged))),
    ("items_restored", "items that were in the file of -e when the server started",
        |now| show(now.now.table.store.restored)),
    ("items_lost", "items in that file that were not whole, because the process before was ended \
        by force while it changed them",
        |now| show(now.now.table.store.lost)),
    ("prefixes_unswept", "prefixes that were flushed, and whose items have yet to be removed",
        |now| show(now.admin.groups_unswept())),
    ("dead_bytes", "bytes of deleted and replaced items in the logs, and of room in which items \
        may grow, as of the last second in which items were added. They are used again before \
        live items are evicted",
        |now| show(now.now.table.store.dead_bytes)),
    ("reinsertions", "items that the eviction rule kept when their memory was wanted",
        |now| show(count!(now, table.store.reinsertions))),
    ("in_place_updates", "stores that wrote over the old value",
        |now| show(count!(now, table.store.in_place_updates))),
    ("optimistic_retries", "reads that met too many writers, and were executed as writes are, \
        one at a time",
        |now| show(count!(now, table.requests.optimistic_retries))),
    ("snapshot_state", "`writing`, or `idle`; with `--snapshot` only, as the following rows",
        |now| now.admin.snapshots().map(|it| match it.is_writing {
            true => "writing".to_owned(),
            false => "idle".to_owned(),
        })),
    ("snapshot_items_so_far", "items of the snapshot that is being written, or was written last",
        |now| show(now.admin.snapshots()?.writing.0)),
    ("snapshot_bytes_so_far", "its bytes",
        |now| show(now.admin.snapshots()?.writing.1)),
    ("snapshots_written", "snapshots written since the start",
        |now| show(now.admin.snapshots()?.written)),
    ("snapshots_failed", "snapshots that were not written because of an error",
        |now| show(now.admin.snapshots()?.failed)),
    ("snapshot_error", "the error, if the last snapshot was not written",
        |now| now.admin.snapshot_error()),
    ("snapshot_time", "when the last snapshot was complete, in seconds since 1970; 0 if none was \
        written",
        |now| show(now.admin.snapshots()?.last.unix_s)),
    ("snapshot_ms", "how long it took, in milliseconds",
        |now| show(now.admin.snapshots()?.last.ms)),
    ("snapshot_items", "its items",
        |now| show(now.admin.snapshots()?.last.items)),
    ("snapshot_bytes", "its bytes",
        |now| show(now.admin.snapshots()?.last.bytes)),
    ("snapshot_loaded", "items loaded at the start",
        |now| show(now.admin.snapshots()?.loaded.items)),
    ("snapshot_loaded_bytes", "their bytes in the file",
        |now| show(now.admin.snapshots()?.loaded.bytes)),
    ("snapshot_loaded_ms", "how long that took, in milliseconds",
        |now| show(now.admin.snapshots()?.loaded.ms)),
    ("snapshot_expired", "items of the file that had expired",
        |now| show(now.admin.snapshots()?.loaded.expired)),
    ("snapshot_dropped", "items of the file that did not fit: too large, refused, or evicted by \
        later ones",
        |now| show(now.admin.snapshots()?.loaded.dropped)),
    ("snapshot_present", "items of the file whose key had an item already",
        |now| show(now.admin.snapshots()?.loaded.present)),
    ("snapshot_damaged", "damaged blocks and stretches of the file, whose items were not loaded; \
        1 if only its end is missing",
        |now| show(now.admin.snapshots()?.loaded.damaged)),
    ("addresses_counted", "addresses of clients, while addresses are limited. Those without a \
        connection are forgotten now and then",
        |now| match now.admin.tenants().addresses() {
            0 => None,
            count => show(count),
        }),
    ("log_lines_lost", "lines of the log lost because stderr accepted no more, or could not be \
        written",
        |now| show(now.admin.log.lost())),
];

/// What workers counted: in `stats glimmer` all of them since the last `stats reset`, in `stats
/// workers` each since the start.
#[rustfmt::skip]
const WORK: &[Statistic<OfWork>] = &[
    ("requests", "requests executed by the worker that received them",
        |work| show(work.requests)),
    ("batches", "batches in which they were executed",
        |work| show(work.batches)),
    ("batch_mean", "requests per batch",
        |work| mean(work.requests, work.batches)),
    ("prefix_flushes", "prefixes that clients have flushed (`flush_prefix`)",
        |work| show(work.prefix_flushes)),
    ("visits", "connections sent to another worker for one large request (`--dispatch size-aware`)",
        |work| show(work.visits)),
    ("handed_on", "connections put into a software queue, for any worker to take \
        (`--dispatch handoff` and `stealing`)",
        |work| show(work.handed_on)),
    ("taken", "connections taken from the software queue of another worker",
        |work| show(work.taken)),
    ("moved", "connections that moved to another worker when the dispatch policy changed",
        |work| show(work.moved)),
    ("requests_crossed", "requests sent to another worker, because it owns their key",
        |work| show(work.requests_crossed)),
    ("forwarded_batches", "batches in which they were sent",
        |work| show(work.forwarded_batches_sent)),
    ("forwarded_batch_mean", "requests per such batch; near 1, the workers mostly wake one another",
        |work| mean(work.requests_crossed, work.forwarded_batches_sent)),
    ("uploads_postponed", "connections that had to wait with a large value or a transaction, \
        because others took as much of the memory for items as these may take",
        |work| show(work.uploads_postponed)),
    ("values_refused", "values refused for lack of memory for buffers, and transactions for \
        lack of places",
        |work| show(work.values_refused)),
    ("stalled_kicks", "connections closed because they held what others waited for (memory for \
        buffers, places for large values, the turn for `KEYS`), or watched and read too slowly for \
        a minute",
        |work| show(work.stalled_kicks)),
    ("throttled", "how often a connection was not read for a while, because its user or its \
        address was over a limit of requests or bytes",
        |work| show(work.throttled)),
    ("requests_over_limit", "requests refused because their connection had waited for that for \
        as long as it may",
        |work| show(work.requests_over_limit)),
    ("requests_denied", "requests and commands that users have no right to",
        |work| show(work.requests_denied)),
    ("user_connections_refused", "connections closed at their login, because their user had as \
        many as it may",
        |work| show(work.user_connections_refused)),
    ("address_connections_refused", "connections closed because their address had as many as it \
        may",
        |work| show(work.address_connections_refused)),
    ("turns", "turns of the workers' loops",
        |work| show(work.turns)),
    ("polling_busy_us", "microseconds of those turns of workers that never sleep in which there \
        was something to do",
        |work| show(work.polling_busy_ns / 1000)),
    ("datagrams_received", "UDP datagrams received",
        |work| show(work.datagrams_received)),
    ("datagrams_sent", "UDP datagrams sent",
        |work| show(work.datagrams_sent)),
    ("datagrams_dropped", "UDP datagrams that were no requests",
        |work| show(work.datagrams_dropped)),
    ("datagrams_unsent", "UDP datagrams that could not be sent",
        |work| show(work.datagrams_unsent)),
    ("datagrams_overflowed",
        "UDP datagrams that the kernel or the NIC dropped before they were received",
        |work| show(work.datagrams_overflowed)),
    ("accept_failures", "attempts to accept a connection that failed",
        |work| show(work.accept_failures)),
];

/// What has been learned about the eviction rule.
fn learned(snapshot: &Snapshot<'_>) -> Option<Learned> {
    snapshot.admin.tables.first()?.learned()
}

fn estimates(found: [f64; SETTINGS.len()]) -> String {
    let each = SETTINGS.iter().zip(found);
    let each = each.map(|((name, _), found)| format!("{name}={found:.3}"));
    each.collect::<Vec<_>>().join(" ")
}

fn show(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// A mean, if there is anything to divide by.
fn mean(sum: u64, of: u64) -> Option<String> {
    (of > 0).then(|| format!("{:.2}", sum as f64 / of as f64))
}

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    for (name, _, value) in SERVER {
        if let Some(value) = value(snapshot) {
            lines.put(name, value);
        }
    }
    let since_reset = snapshot.now.node.since(&snapshot.at_reset.node);
    work(&since_reset, |name, value| lines.put(name, value));
}

/// Hands out the statistics of workers.
pub(super) fn work(tally: &Tally, mut put: impl FnMut(&str, String)) {
    for (name, _, value) in WORK {
        if let Some(value) = value(tally) {
            put(name, value);
        }
    }
}

#[cfg(test)]
pub(super) use tests::documented;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/statistics.md");

    /// The rows of a table of the page, after a heading.
    fn rows(heading: &str) -> Vec<&'static str> {
        let (_, table) = PAGE.split_once(heading).expect(heading);
        table
            .lines()
            .skip_while(|line| !line.starts_with("| ---"))
            .skip(1)
            .take_while(|line| line.starts_with('|'))
            .collect()
    }

    #[test]
    fn the_documentation_has_a_row_for_each_statistic_and_no_others() {
        let row = |name: &str, about: &str| format!("| `{name}` | {about} |");
        let server: Vec<_> = SERVER
            .iter()
            .map(|(name, about, _)| row(name, about))
            .collect();
        let work: Vec<_> = WORK
            .iter()
            .map(|(name, about, _)| row(name, about))
            .collect();
        documented("## The server", server);
        documented("## The work", work);
    }

    /// Checks that the page has these rows after a heading and no others.
    pub fn documented(heading: &str, expected: Vec<String>) {
        let found = rows(heading);
        for row in &expected {
            let is_there = found.contains(&row.as_str());
            assert!(
                is_there,
                "docs/statistics.md, {heading}, lacks the row\n{row}"
            );
        }
        for row in found {
            let is_known = expected.iter().any(|known| known == row);
            assert!(
                is_known,
                "docs/statistics.md, {heading}, has the row\n{row}"
            );
        }
    }
}

//! Connections and datagrams.

use super::family::{Family, In};
use crate::stats::Kind;

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_connections", In::Units,
        "Open connections, by worker",
        |source, out| {
            for (worker, (tally, _)) in source.figures.workers.iter().enumerate() {
                out.of_worker(worker, tally.curr_connections);
            }
        }),
    Family::gauge("glimmer_connections_by_state", In::Units,
        "Open connections, by the listener that they came in at (a port of TCP, or unix) and their \
         state: conn_read waits for a request, conn_nread for the rest of a value, conn_parse_cmd \
         is executing or sending, conn_watch is shown events. Counted every few seconds",
        |source, out| {
            for (name, count) in source.figures.texts.of(Kind::Connections) {
                if let Some((listener, state)) = name.rsplit_once(':')
                    && let Ok(count) = count.parse::<u64>()
                {
                    let label = |text: &str| text.to_owned().into();
                    out.with([("listener", label(listener)), ("state", label(state))], count);
                }
            }
        }),
    Family::gauge("glimmer_connections_limit", In::Units,
        "The most connections (-c)",
        |source, out| out.put(source.figures.config.connections_max)),
    Family::counter("glimmer_connections_opened", In::Units,
        "Connections accepted and served",
        |source, out| out.put(source.figures.node().total_connections)),
    Family::counter("glimmer_connections_closed", In::Units,
        "Connections closed, by reason: silent for longer than idle_timeout, holding memory that \
         others needed, breaking the protocol or logging in wrongly, or by the client and for all \
         other reasons",
        |source, out| {
            let of = source.figures.node();
            let closed = of.total_connections.saturating_sub(of.curr_connections);
            let for_a_reason = of.idle_kicks + of.stalled_kicks + of.error_kicks;
            out.one("reason", "idle", of.idle_kicks);
            out.one("reason", "stalled", of.stalled_kicks);
            out.one("reason", "error", of.error_kicks);
            let otherwise = closed.saturating_sub(for_a_reason);
            out.one("reason", "other", source.rising.closed_otherwise.at_least(otherwise));
        }),
    Family::counter("glimmer_connections_refused", In::Units,
        "Connections that were not served, by reason: there were too many, or too many of one user \
         or address, or the process or the kernel had run out of descriptors or memory",
        |source, out| {
            let of = source.figures.node();
            out.one("reason", "limit", of.rejected_connections);
            out.one("reason", "user", of.user_connections_refused);
            out.one("reason", "address", of.address_connections_refused);
            out.one("reason", "resources", of.accept_failures);
        }),
    Family::counter("glimmer_accepting_stopped", In::Units,
        "How often accepting stopped because there were as many connections as there may be",
        |source, out| out.put(source.figures.node().listen_disabled)),
    Family::counter("glimmer_accepting_stopped_time", In::Seconds,
        "For how long accepting was stopped for that reason",
        |source, out| out.put(source.figures.node().listen_disabled_ms as f64 / 1e3)),
    Family::counter("glimmer_connection_yields", In::Units,
        "How often a connection had to let others go first",
        |source, out| out.put(source.figures.node().conn_yields)),
    Family::counter("glimmer_received", In::Bytes,
        "Bytes received from clients",
        |source, out| out.put(source.figures.node().bytes_read)),
    Family::counter("glimmer_sent", In::Bytes,
        "Bytes sent to clients",
        |source, out| out.put(source.figures.node().bytes_written)),
    Family::counter("glimmer_datagrams_received", In::Units,
        "UDP datagrams received",
        |source, out| out.put(source.figures.node().datagrams_received)),
    Family::counter("glimmer_datagrams_sent", In::Units,
        "UDP datagrams sent",
        |source, out| out.put(source.figures.node().datagrams_sent)),
    Family::counter("glimmer_datagrams_lost", In::Units,
        "UDP datagrams without effect, by reason: no request, a reply that could not be sent, or \
         dropped by the kernel or the NIC before they were received",
        |source, out| {
            let of = source.figures.node();
            out.one("reason", "malformed", of.datagrams_dropped);
            out.one("reason", "unsent", of.datagrams_unsent);
            out.one("reason", "overflowed", of.datagrams_overflowed);
        }),
    Family::counter("glimmer_native_datagrams", In::Units,
        "Datagrams received from native clients",
        |source, out| out.put(source.figures.node().native_datagrams)),
    Family::counter("glimmer_native_receives", In::Units,
        "System calls that received them",
        |source, out| out.put(source.figures.node().native_receives)),
    Family::counter("glimmer_native_requests", In::Units,
        "Requests of native clients that were executed",
        |source, out| out.put(source.figures.node().native_requests)),
    Family::counter("glimmer_native_requests_refused", In::Units,
        "Requests of native clients that were not executed, by reason",
        |source, out| {
            let of = source.figures.node();
            out.one("reason", "misdirected", of.native_misdirected);
            out.one("reason", "unproven", of.native_unproven);
            out.one("reason", "repeated", of.native_repeated);
            out.one("reason", "superseded", of.native_superseded);
        }),
    Family::counter("glimmer_native_handed_over", In::Units,
        "Datagrams of native clients that were forwarded to the owner of their keys",
        |source, out| out.put(source.figures.node().native_handed_over)),
    Family::counter("glimmer_native_handed_over_batches", In::Units,
        "Batches of such datagrams",
        |source, out| out.put(source.figures.node().native_handover_batches)),
    Family::counter("glimmer_native_replies_in_place", In::Units,
        "Replies to native clients that were written over their requests",
        |source, out| out.put(source.figures.node().native_in_place)),
    Family::gauge("glimmer_watchers", In::Units,
        "Clients that watch events",
        |source, out| {
            if let Some(count) = source.figures.texts.number(Kind::General, "log_watchers") {
                out.put(count);
            }
        }),
    Family::counter("glimmer_watch_events", In::Units,
        "Lines about events for watchers, by what became of them",
        |source, out| {
            for outcome in ["sent", "skipped"] {
                let name = format!("log_watcher_{outcome}");
                if let Some(count) = source.figures.texts.number(Kind::General, &name) {
                    out.one("outcome", outcome, count);
                }
            }
        }),
];

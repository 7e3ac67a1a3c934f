//! What clients asked for, and what it came to.

use super::family::{Family, In};

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::counter("glimmer_commands", In::Units,
        "Keys that commands named, by command and by what became of them",
        |source, out| {
            let of = &source.figures.table().requests;
            for (command, outcome, count) in [
                ("get", "hit", of.get_hits),
                ("get", "miss", of.get_misses),
                ("touch", "hit", of.touch_hits),
                ("touch", "miss", of.touch_misses),
                ("delete", "hit", of.delete_hits),
                ("delete", "miss", of.delete_misses),
                ("incr", "hit", of.incr_hits),
                ("incr", "miss", of.incr_misses),
                ("decr", "hit", of.decr_hits),
                ("decr", "miss", of.decr_misses),
                ("cas", "hit", of.cas_hits),
                ("cas", "miss", of.cas_misses),
                ("cas", "outdated", of.cas_badval),
            ] {
                out.with([("command", command.into()), ("outcome", outcome.into())], count);
            }
        }),
    Family::counter("glimmer_stores", In::Units,
        "Stores of every kind that clients sent (set, add, replace, append, prepend, cas)",
        |source, out| out.put(source.figures.table().requests.cmd_set)),
    Family::counter("glimmer_touches", In::Units,
        "Commands that changed an expiry time (touch, gat)",
        |source, out| out.put(source.figures.table().requests.cmd_touch)),
    Family::counter("glimmer_inspections", In::Units,
        "Items that the meta command me has shown",
        |source, out| out.put(source.figures.table().requests.cmd_meta)),
    Family::counter("glimmer_stores_refused", In::Units,
        "Stores that were refused, by reason",
        |source, out| {
            let of = &source.figures.table().requests;
            out.one("reason", "too_large", of.store_too_large);
            out.one("reason", "no_memory", of.store_no_memory);
            out.one("reason", "no_buffer", source.figures.node().values_refused);
        }),
    Family::counter("glimmer_get_misses_of_gone_items", In::Units,
        "Reads that missed because the item had expired or had been flushed, and was still there",
        |source, out| {
            let of = &source.figures.table().requests;
            out.one("reason", "expired", of.get_expired);
            out.one("reason", "flushed", of.get_flushed);
        }),
    Family::counter("glimmer_optimistic_retries", In::Units,
        "Reads that met too many writers and were executed as writes are",
        |source, out| out.put(source.figures.table().requests.optimistic_retries)),
    Family::counter("glimmer_flushes", In::Units,
        "Commands that flush all items",
        |source, out| out.put(source.figures.node().cmd_flush)),
    Family::counter("glimmer_logins", In::Units,
        "Attempts to authenticate, by outcome: admitted, refused, or full, as the user had as many \
         connections as it may",
        |source, out| {
            let of = source.figures.node();
            out.one("outcome", "admitted", of.auth_admitted);
            out.one("outcome", "refused", of.auth_errors);
            out.one("outcome", "full", of.user_connections_refused);
        }),
    Family::counter("glimmer_requests_denied", In::Units,
        "Requests that users were refused, by reason: they have no right to them, or their \
         connection had waited for a limit for as long as it may",
        |source, out| {
            let of = source.figures.node();
            out.one("reason", "right", of.requests_denied);
            out.one("reason", "limit", of.requests_over_limit);
        }),
    Family::counter("glimmer_connections_throttled", In::Units,
        "How often a connection was not read for a while, because its user or its address was \
         over a limit of requests or bytes",
        |source, out| out.put(source.figures.node().throttled)),
    Family::counter("glimmer_requests_by_size", In::Units,
        "Requests by the size of their values, while the dispatch policy counts them by size. \
         A class has sizes below its label and at least half of it",
        |source, out| {
            for class in glimmer_dispatch::SizeClass::all() {
                let count = source.figures.by_size.of_class(class);
                if count > 0 {
                    out.with([("below_bytes", class.sizes().end.to_string().into())], count);
                }
            }
        }),
    Family::counter("glimmer_requests_by_size_value", In::Bytes,
        "The bytes of the values of these requests",
        |source, out| {
            for class in glimmer_dispatch::SizeClass::all() {
                let of = &source.figures.by_size;
                if of.of_class(class) > 0 {
                    let below = class.sizes().end.to_string();
                    out.with([("below_bytes", below.into())], of.bytes_of_class(class));
                }
            }
        }),
];

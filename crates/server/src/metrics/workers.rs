//! What each worker does, the dispatch policy, and the accelerator.

use glimmer_node::Tally;

use super::Source;
use super::family::{Family, In, Samples};
use crate::stats::Kind;

/// A counter of each worker.
fn each(source: &Source, out: &mut Samples, count: fn(&Tally) -> u64) {
    for (worker, (tally, _)) in source.figures.workers.iter().enumerate() {
        out.of_worker(worker, count(tally));
    }
}

/// What `stats dispatch` shows of each worker under this name.
fn dispatched(source: &Source, out: &mut Samples, name: &str) {
    for worker in 0..source.figures.workers.len() {
        let name = format!("worker:{worker}:{name}");
        if let Some(number) = source.figures.texts.number(Kind::Dispatch, &name) {
            out.of_worker(worker, number);
        }
    }
}

/// A state of the accelerator.
fn accelerator(source: &Source, out: &mut Samples, name: &str) {
    if let Some(number) = source.figures.texts.number(Kind::Accelerator, name) {
        out.put(number);
    }
}

/// What `stats accelerator` shows and is no count of events.
const ACCELERATOR_STATES: [&str; 9] = [
    "body",
    "interface",
    "mode",
    "policy",
    "slots",
    "live",
    "quarantined",
    "change_ns",
    "hit_ns",
];

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_workers", In::Units,
        "Worker threads (-t)",
        |source, out| out.put(source.figures.config.workers)),
    Family::gauge("glimmer_worker_silence", In::Seconds,
        "For how long the worker has taken no turn although it was woken; 0 if it has, about every \
         half second",
        |source, out| {
            for (worker, silent_ms) in source.watched.silent_ms.iter().enumerate() {
                out.of_worker(worker, *silent_ms as f64 / 1e3);
            }
        }),
    Family::counter("glimmer_worker_cpu", In::Seconds,
        "CPU time that the worker has used",
        |source, out| {
            for (worker, (_, cpu_ns)) in source.figures.workers.iter().enumerate() {
                if let Some(cpu_ns) = cpu_ns {
                    out.of_worker(worker, *cpu_ns as f64 / 1e9);
                }
            }
        }),
    Family::counter("glimmer_worker_requests", In::Units,
        "Requests that the worker has received and executed",
        |source, out| each(source, out, |work| work.requests)),
    Family::counter("glimmer_worker_batches", In::Units,
        "Batches in which they were executed",
        |source, out| each(source, out, |work| work.batches)),
    Family::counter("glimmer_worker_turns", In::Units,
        "Turns of the worker's loop",
        |source, out| each(source, out, |work| work.turns)),
    Family::counter("glimmer_worker_polling_busy", In::Seconds,
        "Time of those turns of a worker that never sleeps in which there was something to do",
        |source, out| {
            for (worker, (work, _)) in source.figures.workers.iter().enumerate() {
                out.of_worker(worker, work.polling_busy_ns as f64 / 1e9);
            }
        }),
    Family::counter("glimmer_worker_requests_crossed", In::Units,
        "Requests sent to another worker, because it owns their key",
        |source, out| each(source, out, |work| work.requests_crossed)),
    Family::counter("glimmer_worker_forwarded_batches", In::Units,
        "Batches in which they were sent",
        |source, out| each(source, out, |work| work.forwarded_batches_sent)),
    Family::counter("glimmer_worker_forwarded_batches_executed", In::Units,
        "Batches of other workers that were executed",
        |source, out| each(source, out, |work| work.forwarded_batches_run)),
    Family::counter("glimmer_worker_visits", In::Units,
        "Connections sent to another worker for one large request",
        |source, out| each(source, out, |work| work.visits)),
    Family::counter("glimmer_worker_connections_handed_on", In::Units,
        "Connections put into a software queue, for any worker to take",
        |source, out| each(source, out, |work| work.handed_on)),
    Family::counter("glimmer_worker_connections_taken", In::Units,
        "Connections taken from the software queue of another worker",
        |source, out| each(source, out, |work| work.taken)),
    Family::counter("glimmer_worker_connections_moved", In::Units,
        "Connections that have moved to another worker when the plan changed",
        |source, out| each(source, out, |work| work.moved)),
    Family::counter("glimmer_worker_datagrams_drained", In::Units,
        "Datagrams received from the sockets of other workers",
        |source, out| each(source, out, |work| work.drained)),
    Family::gauge("glimmer_worker_buffers", In::Units,
        "Buffers of connections, including unused ones",
        |source, out| each(source, out, |work| work.buffers)),
    Family::gauge("glimmer_worker_queue_length", In::Units,
        "Connections in the worker's software queue, and large requests that others have left it",
        |source, out| dispatched(source, out, "queue_length")),
    Family::gauge("glimmer_worker_role_info", In::Units,
        "What the worker does under the dispatch policy",
        |source, out| {
            for worker in 0..source.figures.workers.len() {
                let name = format!("worker:{worker}:role");
                if let Some(role) = source.figures.texts.get(Kind::Dispatch, &name) {
                    let worker = worker.to_string().into();
                    out.with([("worker", worker), ("role", role.to_owned().into())], 1u64);
                }
            }
        }),
    Family::gauge("glimmer_dispatch_info", In::Units,
        "The dispatch policy and the access mode in force",
        |source, out| {
            let texts = &source.figures.texts;
            let text = |name| texts.get(Kind::Dispatch, name).map(|it| it.to_owned().into());
            if let Some((policy, access)) = text("policy").zip(text("access")) {
                out.with([("policy", policy), ("access", access)], 1u64);
            }
        }),
    Family::counter("glimmer_dispatch_plans", In::Units,
        "How often a plan has replaced another one",
        |source, out| {
            if let Some(count) = source.figures.texts.number(Kind::Dispatch, "plan_version") {
                out.put(count);
            }
        }),
    Family::gauge("glimmer_dispatch_workers_on_plan", In::Units,
        "Workers that go by the latest plan",
        |source, out| {
            if let Some(count) = source.figures.texts.number(Kind::Dispatch, "workers_on_plan") {
                out.put(count);
            }
        }),
    Family::gauge("glimmer_dispatch_large_from", In::Bytes,
        "Requests for values of this many bytes and more are large",
        |source, out| {
            if let Some(bytes) = source.figures.texts.number(Kind::Dispatch, "large_from_bytes") {
                out.put(bytes);
            }
        }),
    Family::gauge("glimmer_accelerator_info", In::Units,
        "What answers reads of hot keys before the server does, and at which interface",
        |source, out| {
            let texts = &source.figures.texts;
            let text = |name| {
                let found = texts.get(Kind::Accelerator, name).unwrap_or("none");
                (name, found.to_owned().into())
            };
            out.with(["body", "interface", "mode", "policy"].map(text), 1u64);
        }),
    Family::gauge("glimmer_accelerator_slots", In::Units,
        "Items for which the accelerator has room",
        |source, out| accelerator(source, out, "slots")),
    Family::gauge("glimmer_accelerator_slots_live", In::Units,
        "Items that the accelerator answers with",
        |source, out| accelerator(source, out, "live")),
    Family::gauge("glimmer_accelerator_slots_quarantined", In::Units,
        "Keys that the accelerator keeps out now",
        |source, out| accelerator(source, out, "quarantined")),
    Family::counter("glimmer_accelerator_events", In::Units,
        "What the accelerator has counted; stats accelerator explains the events",
        |source, out| {
            for (name, value) in source.figures.texts.of(Kind::Accelerator) {
                if let Ok(count) = value.parse::<f64>()
                    && !ACCELERATOR_STATES.contains(&name)
                {
                    out.with([("event", name.to_owned().into())], count);
                }
            }
        }),
    Family::gauge("glimmer_accelerator_paused", In::Units,
        "Whether the accelerator answers nothing for now",
        |source, out| {
            if let Some(reasons) = source.figures.texts.get(Kind::Accelerator, "paused") {
                out.put(reasons != "no");
            }
        }),
];

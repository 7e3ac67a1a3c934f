//! The server as a process, and its settings. The names with `process_` are those that all clients
//! of Prometheus share.

use std::fs;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};

use super::family::{Family, In};
use crate::stats::Kind;

/// A field of `/proc/self/statm`, in bytes.
fn pages(field: usize) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(field)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_build_info", In::Units,
        "The version of the server, and the version of memcached that it tells clients",
        |source, out| out.with([
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("memcached", source.figures.memcached_version().into()),
        ], 1u64)),
    Family::gauge("glimmer_setting_info", In::Units,
        "The settings, as stats settings shows them",
        |source, out| {
            for (name, value) in source.figures.texts.of(Kind::Settings) {
                let labels = [("setting", name), ("value", value)];
                out.with(labels.map(|(label, it)| (label, it.to_owned().into())), 1u64);
            }
        }),
    Family::gauge("glimmer_uptime", In::Seconds,
        "For how long the server has run",
        |source, out| {
            let figures = &source.figures;
            let ms = figures.now.ms.saturating_sub(figures.config.started_ms);
            out.put(ms as f64 / 1e3);
        }),
    Family::gauge("glimmer_ready", In::Units,
        "Whether /readyz says so: every worker takes its turns, and the server is not stopping",
        |source, out| out.put(source.watched.is_ready())),
    Family::counter("glimmer_log_lines_lost", In::Units,
        "Lines of the log that were lost because stderr took no more, or could not be written",
        |source, out| out.put(source.figures.log_lines_lost)),
    Family::counter("glimmer_http_requests", In::Units,
        "Requests for the pages of --http",
        |source, out| out.put(source.watched.requests)),
    Family::gauge("glimmer_snapshot_writing", In::Units,
        "Whether a snapshot is being written (--snapshot)",
        |source, out| if let Some(it) = source.figures.snapshots { out.put(it.is_writing) }),
    Family::counter("glimmer_snapshots", In::Units,
        "Snapshots by what became of them",
        |source, out| if let Some(it) = source.figures.snapshots {
            out.one("outcome", "written", it.written);
            out.one("outcome", "failed", it.failed);
        }),
    Family::gauge("glimmer_snapshot_time", In::Seconds,
        "When the last snapshot was complete, in seconds since 1970",
        |source, out| if let Some(it) = source.figures.snapshots { out.put(it.last.unix_s) }),
    Family::gauge("glimmer_snapshot_duration", In::Seconds,
        "How long the last snapshot took",
        |source, out| if let Some(it) = source.figures.snapshots {
            out.put(it.last.ms as f64 / 1e3);
        }),
    Family::gauge("glimmer_snapshot_items", In::Units,
        "Items of the last snapshot",
        |source, out| if let Some(it) = source.figures.snapshots { out.put(it.last.items) }),
    Family::gauge("glimmer_snapshot_size", In::Bytes,
        "The file of the last snapshot",
        |source, out| if let Some(it) = source.figures.snapshots { out.put(it.last.bytes) }),
    Family::gauge("glimmer_snapshot_load_items", In::Units,
        "What became of the items of the file that was loaded at the start",
        |source, out| if let Some(it) = source.figures.snapshots {
            out.one("outcome", "loaded", it.loaded.items);
            out.one("outcome", "expired", it.loaded.expired);
            out.one("outcome", "dropped", it.loaded.dropped);
            out.one("outcome", "present", it.loaded.present);
        }),
    Family::gauge("glimmer_snapshot_load_damaged", In::Units,
        "Damaged blocks and stretches of the file that was loaded at the start; \
        1 if only its end is missing",
        |source, out| if let Some(it) = source.figures.snapshots { out.put(it.loaded.damaged) }),
    Family::gauge("glimmer_snapshot_load_duration", In::Seconds,
        "How long loading took",
        |source, out| if let Some(it) = source.figures.snapshots {
            out.put(it.loaded.ms as f64 / 1e3);
        }),
    Family::gauge("process_start_time", In::Seconds,
        "When the process started, in seconds since 1970",
        |source, out| {
            let figures = &source.figures;
            let ms = figures.now.epoch_unix_ms + figures.config.started_ms;
            out.put(ms as f64 / 1e3);
        }),
    Family::counter("process_cpu", In::Seconds,
        "CPU time of the process, in user space and in the kernel",
        |_, out| {
            if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
                let times = [usage.user_time(), usage.system_time()];
                let s = times.map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6);
                out.put(s[0] + s[1]);
            }
        }),
    Family::gauge("process_resident_memory", In::Bytes,
        "Memory of the process that is in RAM",
        |_, out| if let Some(bytes) = pages(1) { out.put(bytes) }),
    Family::gauge("process_virtual_memory", In::Bytes,
        "Address space of the process",
        |_, out| if let Some(bytes) = pages(0) { out.put(bytes) }),
    Family::gauge("process_open_fds", In::Units,
        "Open files, connections included",
        |_, out| if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is that of the list.
            out.put(open.count().saturating_sub(1));
        }),
    Family::gauge("process_max_fds", In::Units,
        "The limit of open files",
        |_, out| if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) { out.put(soft) }),
];

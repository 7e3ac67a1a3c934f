//! `INFO` and `CLIENT LIST`: the fields that clients and exporters of Redis read, as far as this
//! server has them. What Redis has for features that are not here (replicas, files) says that they
//! are not in use. docs/resp.md lists the fields.

use super::general::{self, seconds};
use super::lines::Lines;
use super::{ServerAdmin, Snapshot, count};
use glimmer_base::Moment;
use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_proto::resp::REDIS_VERSION;
use glimmer_proto::sections::{Section, Sections};
use glimmer_proto::text::lines::VERSION_NUMBER;
use nix::sys::resource::{UsageWho, getrusage};
use std::fmt::Display;
use std::io::Write;
use std::os::fd::RawFd;

/// Connections that are read under one lock.
const CLIENTS_AT_ONCE: usize = 32;

/// Appends `name:value` lines.
struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn put(&mut self, name: &str, value: impl Display) {
        write!(self.0, "{name}:{value}\r\n").expect("memory takes every byte");
    }

    /// Fields of features that are not here.
    fn put_zeros(&mut self, names: &[&str]) {
        for name in names {
            self.put(name, 0);
        }
    }
}

/// Appends the sections, with an empty line between two.
pub(super) fn write_info(snapshot: &Snapshot<'_>, sections: Sections, out: &mut Vec<u8>) {
    for &section in Section::ALL.iter().filter(|&&it| sections.has(it)) {
        if !out.is_empty() {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"# ");
        out.extend_from_slice(section.name().as_bytes());
        out.extend_from_slice(b"\r\n");
        let fields = &mut Fields(out);
        match section {
            Section::Server => server(snapshot, fields),
            Section::Clients => clients(snapshot, fields),
            Section::Memory => memory(snapshot, fields),
            Section::Persistence => fields.put_zeros(&[
                "loading",
                "rdb_bgsave_in_progress",
                "aof_enabled",
                "aof_rewrite_in_progress",
            ]),
            Section::Stats => stats(snapshot, fields),
            Section::Replication => {
                fields.put("role", "master");
                fields.put("connected_slaves", 0);
            }
            Section::CPU => processor(fields),
            Section::Cluster => fields.put("cluster_enabled", 0),
            Section::Keyspace => keyspace(snapshot, fields),
            Section::Glimmer => own(snapshot, fields),
        }
    }
}

fn server(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    let now = snapshot.moment;
    let uptime_s = now.ms.saturating_sub(snapshot.admin.config.started_ms) / 1000;
    fields.put("redis_version", REDIS_VERSION);
    fields.put("glimmer_version", VERSION_NUMBER);
    fields.put("redis_mode", "standalone");
    fields.put("os", "Linux");
    fields.put("arch_bits", usize::BITS);
    fields.put("process_id", std::process::id());
    let tcp = snapshot.admin.tcp();
    fields.put("tcp_port", tcp.first().map_or(0, |address| address.port()));
    fields.put("server_time_usec", (now.epoch_unix_ms + now.ms) * 1000);
    fields.put("uptime_in_seconds", uptime_s);
    fields.put("uptime_in_days", uptime_s / (24 * 60 * 60));
}

fn clients(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    fields.put("connected_clients", snapshot.now.node.curr_connections);
    fields.put("maxclients", snapshot.admin.connections_max());
    fields.put_zeros(&["blocked_clients", "tracking_clients"]);
}

/// What is used is the items, the index and the buffers; what is the most is that of `-m`.
fn memory(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    let (table, node) = (&snapshot.now.table, &snapshot.now.node);
    let used = table.store.bytes + table.index_bytes + node.buffer_bytes;
    let most = snapshot.admin.config.memory_bytes;
    fields.put("used_memory", used);
    fields.put("used_memory_human", human(used));
    fields.put("used_memory_dataset", table.store.bytes);
    fields.put(
        "used_memory_overhead",
        table.index_bytes + node.buffer_bytes,
    );
    fields.put("maxmemory", most);
    fields.put("maxmemory_human", human(most as u64));
    let policy = match snapshot.admin.evicts() {
        true => "allkeys-lru",
        false => "noeviction",
    };
    fields.put("maxmemory_policy", policy);
    fields.put("mem_clients_normal", node.buffer_bytes);
}

fn stats(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    fields.put(
        "total_connections_received",
        count!(snapshot, node.total_connections),
    );
    let commands = count!(snapshot, node.requests) + count!(snapshot, node.requests_crossed);
    fields.put("total_commands_processed", commands);
    fields.put("total_net_input_bytes", count!(snapshot, node.bytes_read));
    fields.put(
        "total_net_output_bytes",
        count!(snapshot, node.bytes_written),
    );
    fields.put(
        "rejected_connections",
        count!(snapshot, node.rejected_connections),
    );
    let expired =
        count!(snapshot, table.store.expired_reclaimed) + count!(snapshot, node.crawler_reclaimed);
    fields.put("expired_keys", expired);
    fields.put("evicted_keys", count!(snapshot, table.store.evictions));
    fields.put("keyspace_hits", count!(snapshot, table.requests.get_hits));
    fields.put(
        "keyspace_misses",
        count!(snapshot, table.requests.get_misses),
    );
    fields.put_zeros(&["pubsub_channels", "pubsub_patterns", "latest_fork_usec"]);
    fields.put("acl_access_denied_auth", count!(snapshot, node.auth_errors));
}

fn processor(fields: &mut Fields<'_>) {
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
        fields.put("used_cpu_sys", seconds(usage.system_time()));
        fields.put("used_cpu_user", seconds(usage.user_time()));
    }
}

/// How many of the keys expire is not known, and is given as zero.
fn keyspace(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    let items = snapshot.now.table.store.items;
    if items > 0 {
        fields.put("db0", format_args!("keys={items},expires=0,avg_ttl=0"));
    }
}

fn own(snapshot: &Snapshot<'_>, fields: &mut Fields<'_>) {
    let mut text = Vec::new();
    general::write(snapshot, &mut Lines(&mut text));
    for line in text.split(|&byte| byte == b'\n') {
        let Some(figure) = line.strip_prefix(b"STAT ") else {
            continue;
        };
        let mut parts = figure.splitn(2, |&byte| byte == b' ');
        for (part, end) in [(parts.next(), b':'), (parts.next(), b'\n')] {
            fields.0.extend_from_slice(part.unwrap_or_default());
            fields.0.push(end);
        }
    }
}

/// A number of bytes as Redis shows it to people.
fn human(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut units = ["B", "K", "M", "G", "T"].iter();
    loop {
        match units.next() {
            Some(unit) if number < 1024.0 && *unit == "B" => return format!("{bytes}B"),
            Some(unit) if number < 1024.0 => return format!("{number:.2}{unit}"),
            Some(_) => number /= 1024.0,
            None => return format!("{number:.2}P"),
        }
    }
}

/// Appends connections, one a line, starting with descriptor `from`. Returns where the next ones
/// start.
pub(super) fn write_clients(
    admin: &ServerAdmin,
    from: u64,
    now: Moment,
    out: &mut Vec<u8>,
) -> Option<u64> {
    let (begin, mut next) = (out.len(), RawFd::try_from(from).unwrap_or(RawFd::MAX));
    while out.len() - begin < REPORT_BYTES_HIGH {
        let sockets = admin.sockets(next, CLIENTS_AT_ONCE);
        let is_last = sockets.len() < CLIENTS_AT_ONCE;
        for socket in sockets {
            next = socket.fd + 1;
            let Some(listens_at) = &socket.listen_address else {
                continue;
            };
            let of_transport = |name: &str| match name.split_once(':') {
                Some((_, address)) => address.to_owned(),
                None => name.to_owned(),
            };
            let idle_s = now.ms.saturating_sub(socket.active_ms) / 1000;
            writeln!(
                out,
                "id={} addr={} laddr={} fd={} name= idle={idle_s} flags=N db=0 cmd=NULL \
                 user=default",
                socket.fd,
                of_transport(&socket.address),
                of_transport(listens_at),
                socket.fd,
            )
            .expect("memory takes every byte");
        }
        if is_last {
            return None;
        }
    }
    Some(next as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_to_people() {
        assert_eq!(human(0), "0B");
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(1 << 20), "1.00M");
        assert_eq!(human(3 << 29), "1.50G");
    }
}

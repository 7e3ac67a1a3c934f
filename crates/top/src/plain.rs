//! Output without a terminal: a line per interval, or a full report of one interval.

use std::{
    fmt::Write,
    io::{self, Write as _, stdout},
};

use anyhow::{Result, bail};
use glimmer_notation::{memory, microseconds};

use super::{
    text::{count, inside, latency, percent},
    watch::{View, Watch},
};

/// Lines between two headings.
const HEAD_EVERY: u64 = 20;

/// Prints a full report of one interval.
pub fn once(watch: &mut Watch) -> Result<()> {
    let view = watch.view();
    if let Some(why) = &view.gone {
        bail!("{why}");
    }
    print(&report(&view))?;
    Ok(())
}

/// Prints a line per interval, up to `most` lines if that is given. Reports once if the server is
/// gone.
pub fn lines(watch: &mut Watch, most: Option<u64>) -> Result<()> {
    let mut was_gone = false;
    let mut printed = 0;
    for _ in 0..most.unwrap_or(u64::MAX) {
        let view = watch.view();
        match &view.gone {
            Some(why) if !was_gone => eprintln!("glimmer: {why}; trying again"),
            None if was_gone => eprintln!("glimmer: {} answers again", view.server),
            _ => {}
        }
        was_gone = view.gone.is_some();
        if was_gone {
            continue;
        }
        let head = u64::is_multiple_of(printed, HEAD_EVERY).then(head);
        let text = head.unwrap_or_default() + &line(&view);
        printed += 1;
        if !print(&text)? {
            break;
        }
    }
    Ok(())
}

/// Prints a text. Returns whether the output still has a reader.
fn print(text: &str) -> io::Result<bool> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

/// Width of a column: that of the longest cell, `1023 KiB`.
const WIDTH: usize = 8;
const HEADS: [&str; 12] = [
    "req/s", "get/s", "set/s", "hits", "items", "memory", "evict/s", "conns", "in/s", "out/s",
    "p50", "p99",
];

fn head() -> String {
    row(&HEADS.map(str::to_owned))
}

fn row(cells: &[String]) -> String {
    let padded: Vec<String> = cells.iter().map(|cell| format!("{cell:>WIDTH$}")).collect();
    padded.join(" ") + "\n"
}

fn line(view: &View) -> String {
    let interval = &view.interval;
    let kind = |name| {
        let found = interval.kinds.iter().find(|(kind, _)| *kind == name);
        count(found.map_or(0.0, |(_, rate)| *rate))
    };
    let [received, sent] = interval.traffic_bytes_per_s;
    let round_trip = |us: Option<u64>| us.map_or("-".to_owned(), |us| microseconds(us as f64));
    row(&[
        count(interval.requests_per_s),
        kind("get"),
        kind("set"),
        percent(interval.hit_ratio[0]),
        count(interval.items as f64),
        memory(interval.memory.used as f64),
        count(interval.evictions.0),
        interval.connections.to_string(),
        memory(received),
        memory(sent),
        round_trip(view.latency.map(|latency| latency.p50_us)),
        round_trip(view.latency.map(|latency| latency.p99_us)),
    ])
}

fn report(view: &View) -> String {
    let interval = &view.interval;
    let mut out = format!("{}: {}\n", view.server, interval.about.join(", "));
    let mut say = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<14} {value}");
    };
    say("requests/s", count(interval.requests_per_s));
    for (kind, rate) in &interval.kinds {
        say(&format!("  {kind}/s"), count(*rate));
    }
    let [now, always] = interval.hit_ratio;
    say(
        "hit ratio",
        format!(
            "{} ({} since the counters began)",
            percent(now),
            percent(always)
        ),
    );
    say("items", interval.items.to_string());
    let [used, limit] = [interval.memory.used, interval.memory.limit];
    let [used, limit] = [used, limit].map(|bytes| memory(bytes as f64));
    say("memory", format!("{used} of {limit}"));
    for (part, bytes) in &interval.memory.parts {
        say(&format!("  {part}"), memory(*bytes as f64));
    }
    let (per_s, total) = interval.evictions;
    say(
        "evictions/s",
        format!("{} ({total} since the counters began)", count(per_s)),
    );
    say("connections", interval.connections.to_string());
    let [received, sent] = interval.traffic_bytes_per_s.map(memory);
    say("traffic", format!("{received}/s in, {sent}/s out"));
    if let Some(cores) = interval.cores_busy {
        say("cores busy", format!("{cores:.2}"));
    }
    for (number, worker) in interval.workers.iter().enumerate() {
        let mut value = format!(
            "{} busy, {} requests/s, {} connections",
            percent(worker.load),
            count(worker.requests_per_s),
            worker.connections
        );
        if let Some(role) = &worker.role {
            value += &format!(", role {role}");
        }
        if let Some([now, most]) = worker.queue {
            value += &format!(", {now} waiting, {most} at most");
        }
        say(&format!("  worker {number}"), value);
    }
    if let Some(bytes) = interval.large_from_bytes {
        say("large from", memory(bytes as f64));
    }
    for row in &interval.sizes {
        let [below, rate, p99, share, p50] = row.cells();
        let value = format!("{rate} requests/s, {share}, p50 {p50}, p99 {p99}");
        say(&format!("  < {below}"), value);
    }
    say("round trip", latency(view.latency).join(", "));
    if let Some(times) = interval.inside_us {
        say("inside", inside(times).join(", "));
    }
    if let Some(accelerator) = &interval.accelerator {
        say("accelerator", accelerator.body.clone());
        for (name, fields) in accelerator.lines() {
            say(&format!("  {name}"), fields.join(", "));
        }
    }
    if let Some(packets) = &interval.packets {
        say("packets", packets.transport.clone());
        for (name, values) in packets.lines() {
            say(&format!("  {name}"), values.join(", "));
        }
    }
    for hot in &interval.hot {
        let [rate, size] = hot.cells();
        say("  hot key", format!("{} {rate} reads/s, {size}", hot.key));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hot::{Acceleration, HotKey},
        packets::Packets,
        sample::{Interval, Worker},
        sizes::SizeRow,
    };

    #[test]
    fn a_line_has_a_cell_for_every_head() {
        let view = View {
            interval: Interval {
                requests_per_s: 12_345.0,
                kinds: vec![("get", 12_000.0), ("set", 345.0)],
                hit_ratio: [Some(0.9), Some(0.8)],
                ..Interval::default()
            },
            ..View::default()
        };
        let (head, line) = (head(), line(&view));
        assert_eq!(head.chars().count(), line.chars().count(), "{line:?}");
        assert_eq!(
            head.trim_end().chars().count(),
            HEADS.len() * (WIDTH + 1) - 1
        );
        let cells: Vec<&str> = line.split_whitespace().take(4).collect();
        assert_eq!(cells, ["12k", "12k", "345", "90.0%"]);
    }

    #[test]
    fn sizes_and_roles_are_reported_only_if_the_server_does() {
        let mut view = View::default();
        assert!(!report(&view).contains("large from"));
        view.interval = Interval {
            large_from_bytes: Some(2048),
            sizes: vec![SizeRow {
                below_bytes: 1 << 20,
                share: 0.25,
                requests_per_s: 40.0,
                percentiles_us: Some([350.0, 1200.0]),
            }],
            workers: vec![Worker {
                load: Some(0.5),
                requests_per_s: 12.0,
                connections: 3,
                role: Some("large".to_owned()),
                queue: Some([1, 4]),
            }],
            ..Interval::default()
        };
        let report = report(&view);
        for line in [
            "large from     2.0 KiB",
            "  < 1.0 MiB    40 requests/s, 25.0%, p50 350 µs, p99 1200 µs",
            "  worker 0     50.0% busy, 12 requests/s, 3 connections, role large, 1 waiting, 4 at \
             most",
        ] {
            assert!(report.lines().any(|other| other == line), "{report}");
        }
    }

    #[test]
    fn hot_keys_are_reported_only_if_the_server_does() {
        let mut view = View::default();
        assert!(!report(&view).contains("hot key"));
        view.interval.hot = vec![HotKey::parse("user:1", "4711/s 100 B").unwrap()];
        assert!(
            report(&view).contains("hot key      user:1 4.7k reads/s, 100 B"),
            "{}",
            report(&view)
        );
    }

    #[test]
    fn packets_are_reported_only_if_a_transport_has_them() {
        let mut view = View::default();
        assert!(!report(&view).contains("packets"));
        view.interval.packets = Some(Packets {
            transport: "xdp at eth0 (native, 2 queues)".to_owned(),
            received_per_s: 2000.0,
            dropped_per_s: vec![("ring_full".to_owned(), 3.0)],
            ..Packets::default()
        });
        let report = report(&view);
        for line in [
            "packets        xdp at eth0 (native, 2 queues)",
            "  datagrams    2.0k/s in, 0/s out, 3/s dropped, 0/s refused",
            "  dropped      ring_full 3/s",
        ] {
            assert!(report.contains(line), "{line}: {report}");
        }
        assert!(!report.contains("  refused"), "{report}");
    }

    #[test]
    fn the_accelerator_is_reported_only_if_there_is_one() {
        let mut view = View::default();
        assert!(!report(&view).contains("accelerator"));
        view.interval.accelerator = Some(Acceleration {
            body: "model".to_owned(),
            share: Some(0.5),
            slots: [7, 1024],
            ..Acceleration::default()
        });
        let report = report(&view);
        for line in [
            "accelerator    model",
            "  share        50.0% of reads",
            "  paused       no",
            "  live slots   7 of 1024",
            "  changes      0/s retracts, 0/s refreshes",
        ] {
            assert!(report.lines().any(|other| other == line), "{report}");
        }
    }
}

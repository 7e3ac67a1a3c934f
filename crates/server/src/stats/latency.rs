//! `stats latency`, an addition to memcached's statistics: how long a sample of the requests took,
//! by what they did and by the size of their values.

use glimmer_node::{Command, Latency, Part};

use super::ServerAdmin;
use super::lines::Lines;

/// What is shown, with its meaning for operators. `COMMAND` stands for `get`, `set`, `delete` or
/// `other`, and `N` for a number of bytes, or `larger`.
#[cfg(test)]
#[rustfmt::skip]
const ROWS: &[(&str, &str)] = &[
    ("COMMAND:N:timed",
        "requests that were timed in the last 30 to 60 seconds, for values of fewer than N bytes"),
    ("COMMAND:N:latency_p50_us", "their median time in microseconds"),
    ("COMMAND:N:latency_p99_us", "their 99th percentile"),
    ("COMMAND:N:latency_p999_us", "their 99.9th percentile"),
    ("COMMAND:N:timed_in_all", "requests that were timed since the start"),
    ("COMMAND:N:mean_in_all_us", "their mean time in microseconds"),
];

/// Writes one part of the reply: the command of this number.
pub(super) fn write(admin: &ServerAdmin, from: u64, lines: &mut Lines<'_>) -> Part {
    let Some((node, command)) = admin.node().zip(Command::ALL.get(from as usize)) else {
        return Part::Last;
    };
    show(&node.latencies(&[*command]), lines);
    Part::More(from + 1)
}

fn show(latencies: &[Latency], lines: &mut Lines<'_>) {
    for latency in latencies {
        let size = match latency.below_bytes {
            Some(bytes) => bytes.to_string(),
            None => "larger".into(),
        };
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("{}:{size}:{name}", latency.command.name()), figure);
        };
        put("timed", latency.late.requests().to_string());
        for (name, share) in [
            ("latency_p50_us", 0.5),
            ("latency_p99_us", 0.99),
            ("latency_p999_us", 0.999),
        ] {
            if let Some(us) = latency.late.percentile_us(share) {
                put(name, format!("{us:.1}"));
            }
        }
        let requests = latency.all.requests();
        put("timed_in_all", requests.to_string());
        put(
            "mean_in_all_us",
            format!("{:.1}", latency.seconds * 1e6 / requests as f64),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::own::documented;
    use glimmer_base::limits::SERVICE_WINDOW_MS;
    use glimmer_dispatch::SizeClass;
    use glimmer_node::Latencies;

    #[test]
    fn each_command_and_size_has_its_times_of_late_and_in_all() {
        let latencies = Latencies::default();
        let record = |command, bytes, us: u64, at: u64| {
            let at_ns = at * SERVICE_WINDOW_MS * 1_000_000;
            latencies.record((command, SizeClass::of(bytes)), 1, us * 1_000, at_ns);
        };
        record(Command::Get, 100, 10, 1);
        record(Command::Get, 100, 30, 4);
        record(Command::Set, 1 << 20, 500, 5);
        let mut text = Vec::new();
        show(
            &Latency::of([&latencies].into_iter(), &Command::ALL),
            &mut Lines(&mut text),
        );
        let text = String::from_utf8(text).unwrap();
        for line in [
            "get:128:timed 1",
            "get:128:timed_in_all 2",
            "get:128:mean_in_all_us 20.0",
            "set:larger:timed 1",
        ] {
            assert!(
                text.contains(&format!("STAT {line}\r\n")),
                "{line} is not in\n{text}"
            );
        }
        assert!(text.contains("STAT set:larger:latency_p999_us "), "{text}");
        assert!(!text.contains("delete"), "{text}");
    }

    #[test]
    fn the_documentation_has_a_row_for_each_name_and_no_others() {
        let rows = ROWS
            .iter()
            .map(|(name, about)| format!("| `{name}` | {about} |"));
        documented("## Latency", rows.collect());
    }
}

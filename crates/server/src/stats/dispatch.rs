//! `stats dispatch`, an addition to memcached's statistics: the dispatch policy in force, what each
//! worker does under its plan, and requests by the size of their values.
//!
//! docs/statistics.md has a row for each name in `ROWS`; a test prints the rows that it lacks,
//! and another one the names that are shown and are not in the list.

use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_dispatch::{Cost, Histogram, SizeClass, Smoothed};
use glimmer_node::{DispatchView, Part, Tally, Times};

use super::ServerAdmin;
use super::lines::Lines;

/// Histograms of times that a part of the reply reads: one of a class on a worker has 3 KB.
const HISTOGRAMS_PER_PART: usize = 16;

/// What is shown, with its meaning for operators. `N` stands for a number.
#[cfg(test)]
#[rustfmt::skip]
const ROWS: &[(&str, &str)] = &[
    ("policy", "the policy in force"),
    ("access",
        "the access mode in force: that of `--access` or of the last `dispatch`; \
            `erew` with one worker"),
    ("plan_version", "how often a plan has replaced another one since the start"),
    ("workers_on_plan", "workers that go by this version"),
    ("epochs", "epochs that have ended since the policy was put in force"),
    ("epoch_ms", "length of an epoch in milliseconds, if the policy has epochs"),
    ("large_from_bytes", "requests for values of this many bytes and more are large"),
    ("worker:N:role", "what the worker does: [a list](dispatch.md#roles)"),
    ("worker:N:sizes_from_bytes",
        "requests for values of this many bytes and more are handed to the worker"),
    ("worker:N:sizes_below_bytes", "if the values have fewer bytes than this"),
    ("worker:N:queue_length",
        "connections that wait in its software queue, or that other workers have sent \
            to it with a large request and that it has not sent home yet"),
    ("worker:N:queue_length_max", "the most of them at a time since the start"),
    ("worker:N:requests", "requests that it has executed while they were counted by size"),
    ("worker:N:requests_share", "its share in those of all workers"),
    ("worker:N:value_bytes", "the bytes of their values"),
    ("worker:N:value_bytes_share", "its share in those of all workers"),
    ("worker:N:cost_share", "its share in what they cost all workers (`--dispatch-cost`)"),
    ("class:N:requests",
        "requests for values of fewer than N bytes and at least half as many, on all \
            workers, while they were counted by size"),
    ("class:N:value_bytes", "the bytes of these values"),
    ("class:N:timed",
        "requests of the class that were timed in the last 30 to 60 seconds, under \
            any policy"),
    ("class:N:latency_p50_us",
        "their median time in microseconds, from the beginning of the turn in which a \
            worker received the request until the reply was written"),
    ("class:N:latency_p99_us", "their 99th percentile"),
];

/// A name, its meaning, and the figure.
type Counter = (&'static str, &'static str, fn(&Tally) -> u64);

/// What a worker has counted since the start, with its meaning for operators. A mechanism that
/// passes requests among the workers adds its counters here.
#[rustfmt::skip]
const COUNTERS: &[Counter] = &[
    ("handed_on",
        "connections, requests and native datagrams that it has passed to other \
            workers, and connections that it has put into its software queue",
        |work| work.visits + work.handed_on + work.requests_crossed + work.native_handed_over),
    ("taken", "connections that it has taken from the software queues of others",
        |work| work.taken),
    ("drained", "datagrams that it has received from the sockets of other workers",
        |work| work.drained),
    ("moved", "connections that have moved from it to another worker when the plan changed",
        |work| work.moved),
];

/// What is shown: all that there is to say of the policy, each worker, and each class of sizes.
struct Shown<'a> {
    view: &'a DispatchView,
    tallies: &'a [Tally],
    times_of: &'a dyn Fn(SizeClass) -> Times,
}

/// Writes one part of the reply, starting with the paragraph of this number.
pub(super) fn write(admin: &ServerAdmin, from: u64, lines: &mut Lines<'_>) -> Part {
    let node = admin.node.get();
    let Some((figures, view)) = node.and_then(|node| {
        let figures = &node.figures;
        Some((figures, figures.dispatch()?))
    }) else {
        return Part::Last;
    };
    let shown = Shown {
        view: &view,
        tallies: &figures.tallies(),
        times_of: &|class| figures.times_of(class),
    };
    shown.write(from as usize, lines)
}

/// Writes all parts of the reply.
pub(super) fn write_all(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let mut from = 0;
    while let Part::More(next) = write(admin, from, lines) {
        from = next;
    }
}

impl Shown<'_> {
    /// The paragraphs from this number on, as many as a part may have: one of the policy, one of
    /// each worker, one of each class. Those of classes read what every worker has timed.
    fn write(&self, from: usize, lines: &mut Lines<'_>) -> Part {
        let begin = lines.0.len();
        let work = (self.view.profiles.iter()).map(|of| Work::of(of, self.view.settings.cost));
        let work: Vec<Work> = work.collect();
        let workers = self.view.plan.roles().len();
        let mut histograms_read = 0;
        for place in from..1 + workers + SizeClass::COUNT {
            let is_long = lines.0.len() - begin >= REPORT_BYTES_HIGH;
            if is_long || histograms_read >= HISTOGRAMS_PER_PART {
                return Part::More(place as u64);
            }
            match place.checked_sub(1) {
                None => self.policy(lines),
                Some(worker) if worker < workers => self.worker(worker, &work, lines),
                Some(place) => {
                    let has_some = self.class(SizeClass::at(place - workers), lines);
                    histograms_read += workers * usize::from(has_some);
                }
            }
        }
        Part::Last
    }

    fn policy(&self, lines: &mut Lines<'_>) {
        let view = self.view;
        let on_plan = view.taken.iter().filter(|&&taken| taken == view.version);
        lines.put("policy", view.policy.name());
        lines.put("access", view.access);
        lines.put("plan_version", view.version);
        lines.put("workers_on_plan", on_plan.count());
        lines.put("epochs", view.epochs);
        if view.plan.is_profiled() {
            lines.put("epoch_ms", view.settings.epoch_ms);
        }
        if view.plan.large_from() < u32::MAX {
            lines.put("large_from_bytes", view.plan.large_from());
        }
    }

    fn worker(&self, worker: usize, work: &[Work], lines: &mut Lines<'_>) {
        let view = self.view;
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("worker:{worker}:{name}"), figure);
        };
        let role = view.plan.role(worker);
        put("role", view.plan.role_name(worker).to_owned());
        if !role.sizes.is_empty() {
            put("sizes_from_bytes", role.sizes.start.to_string());
            put("sizes_below_bytes", role.sizes.end.to_string());
        }
        let (length, most) = view.queues[worker];
        put("queue_length", length.to_string());
        put("queue_length_max", most.to_string());
        for (name, _, count) in COUNTERS {
            put(name, self.tallies.get(worker).map_or(0, count).to_string());
        }
        if view.plan.is_profiled() {
            put_work(work, worker, put);
        }
    }

    /// Requests by the size of their values, if the class had some. Returns whether some of them
    /// were timed.
    fn class(&self, class: SizeClass, lines: &mut Lines<'_>) -> bool {
        let below = class.sizes().end;
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("class:{below}:{name}"), figure);
        };
        let count = |of: fn(&Histogram, SizeClass) -> u64| -> u64 {
            (self.view.profiles.iter())
                .map(|profile| of(profile, class))
                .sum()
        };
        let requests = count(Histogram::of_class);
        if requests > 0 {
            put("requests", requests.to_string());
            put("value_bytes", count(Histogram::bytes_of_class).to_string());
        }
        let times = (self.times_of)(class);
        let percentiles = times.percentile_us(0.5).zip(times.percentile_us(0.99));
        if let Some((p50, p99)) = percentiles {
            put("timed", times.requests().to_string());
            put("latency_p50_us", format!("{p50:.1}"));
            put("latency_p99_us", format!("{p99:.1}"));
        }
        percentiles.is_some()
    }
}

/// What a worker has executed while requests were counted by size.
#[derive(Clone, Copy)]
struct Work {
    requests: u64,
    bytes: u64,
    cost: f64,
}

impl Work {
    fn of(profile: &Histogram, cost: Cost) -> Work {
        let bytes = SizeClass::all().map(|class| profile.bytes_of_class(class));
        let mut whole = Smoothed::default();
        whole.add(profile, 1.0);
        Work {
            requests: profile.requests(),
            bytes: bytes.sum(),
            cost: SizeClass::all()
                .map(|class| cost.of_class(&whole, class))
                .sum(),
        }
    }
}

fn put_work(work: &[Work], worker: usize, mut put: impl FnMut(&str, String)) {
    let share = |figure: fn(&Work) -> f64| {
        let all: f64 = work.iter().map(figure).sum();
        let part = figure(&work[worker]);
        format!("{:.4}", if all > 0.0 { part / all } else { 0.0 })
    };
    put("requests", work[worker].requests.to_string());
    put("requests_share", share(|work| work.requests as f64));
    put("value_bytes", work[worker].bytes.to_string());
    put("value_bytes_share", share(|work| work.bytes as f64));
    put("cost_share", share(|work| work.cost));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::own::documented;
    use glimmer_dispatch::{AccessMode, Layout, PartitionMap, Policy, Settings, SizeAware};
    use glimmer_node::ServiceTimes;
    use std::cell::Cell;
    use std::sync::Arc;

    /// A size-aware server with two workers, of which the second one has executed one large
    /// request, and the first one three small ones.
    fn shown() -> String {
        let layout = Layout {
            map: PartitionMap::new(2, 2),
            access: AccessMode::Crcw,
        };
        let mut profiles = vec![Histogram::default(); 2];
        (0..3).for_each(|_| profiles[0].record(100));
        profiles[1].record(100_000);
        let times = ServiceTimes::default();
        times.record(SizeClass::of(100), 3, 10_000, 1);
        let view = DispatchView {
            policy: Arc::new(SizeAware::DEFAULT),
            settings: Settings::DEFAULT,
            access: AccessMode::Crcw,
            plan: Arc::new(SizeAware::DEFAULT.plan(layout)),
            version: 3,
            taken: vec![3, 2],
            epochs: 4,
            profiles,
            queues: vec![(0, 0), (1, 7)],
        };
        let tally = Tally {
            visits: 5,
            ..Tally::default()
        };
        let mut text = Vec::new();
        let mut lines = Lines(&mut text);
        let shown = Shown {
            view: &view,
            tallies: &[tally, Tally::default()],
            times_of: &|class| times.of_class(class),
        };
        assert_eq!(shown.write(0, &mut lines), Part::Last);
        String::from_utf8(text).unwrap()
    }

    /// However many workers and classes there are, a part reads some histograms and has some lines.
    #[test]
    fn each_part_reads_a_bounded_number_of_histograms() {
        const WORKERS: usize = 64;
        let layout = Layout {
            map: PartitionMap::new(WORKERS, WORKERS),
            access: AccessMode::Crcw,
        };
        let view = DispatchView {
            policy: Arc::new(SizeAware::DEFAULT),
            settings: Settings::DEFAULT,
            access: AccessMode::Crcw,
            plan: Arc::new(SizeAware::DEFAULT.plan(layout)),
            version: 3,
            taken: vec![3; WORKERS],
            epochs: 4,
            profiles: vec![Histogram::default(); WORKERS],
            queues: vec![(0, 0); WORKERS],
        };
        let times = ServiceTimes::default();
        SizeClass::all().for_each(|class| times.record(class, 1, 10_000, 1));
        let read = Cell::new(0);
        let shown = Shown {
            view: &view,
            tallies: &vec![Tally::default(); WORKERS],
            times_of: &|class| {
                read.set(read.get() + WORKERS);
                times.of_class(class)
            },
        };
        let (mut text, mut from, mut parts) = (Vec::new(), 0, 0);
        loop {
            let (before, read_before) = (text.len(), read.get());
            let part = shown.write(from, &mut Lines(&mut text));
            assert!(text.len() - before <= REPORT_BYTES_HIGH + 1_000);
            assert!(read.get() - read_before < HISTOGRAMS_PER_PART + WORKERS);
            parts += 1;
            match part {
                Part::More(next) => from = next as usize,
                _ => break,
            }
        }
        assert!(parts > SizeClass::COUNT, "{parts} parts");
        let text = String::from_utf8(text).unwrap();
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(
            (count(":role "), count(":timed ")),
            (WORKERS, SizeClass::COUNT)
        );
    }

    #[test]
    fn shares_are_of_what_all_workers_have_executed() {
        let text = shown();
        for line in [
            "workers_on_plan 1",
            "epoch_ms 1000",
            "worker:0:role small",
            "worker:0:handed_on 5",
            "worker:0:requests_share 0.7500",
            "worker:1:role standby",
            "worker:1:sizes_from_bytes 2048",
            "worker:1:queue_length 1",
            "worker:1:queue_length_max 7",
            "worker:1:value_bytes_share 0.9970",
            // 72 packets beside three.
            "worker:1:cost_share 0.9600",
            "class:128:requests 3",
            "class:128:timed 3",
            "class:131072:value_bytes 100000",
        ] {
            assert!(
                text.contains(&format!("STAT {line}\r\n")),
                "{line} is not in\n{text}"
            );
        }
        let us = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.expect(name).trim().parse().unwrap()
        };
        assert!((us("STAT class:128:latency_p99_us") / 10.0 - 1.0).abs() < 0.07);
        assert!(!text.contains("class:131072:timed"));
    }

    #[test]
    fn the_documentation_has_a_row_for_each_name_and_no_others() {
        let counters = COUNTERS
            .iter()
            .map(|(name, about, _)| (format!("worker:N:{name}"), *about));
        let rows = ROWS.iter().map(|(name, about)| (name.to_string(), *about));
        let rows: Vec<_> = rows.chain(counters).collect();
        let expected = rows
            .iter()
            .map(|(name, about)| format!("| `{name}` | {about} |"));
        documented("## Dispatch", expected.collect());
        for line in shown().lines() {
            let name = line.split(' ').nth(1).unwrap();
            let parts = name.split(':');
            let parts: Vec<&str> = parts
                .map(|part| {
                    if part.parse::<u64>().is_ok() {
                        "N"
                    } else {
                        part
                    }
                })
                .collect();
            let name = parts.join(":");
            let is_known = rows.iter().any(|(known, _)| *known == name);
            assert!(is_known, "{name} is shown, and not in the list of names");
        }
    }
}

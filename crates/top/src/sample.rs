//! Statistics of a server at one point in time, and what two such samples tell together.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use glimmer_connect::Link;

use super::{
    hot::{Acceleration, HotKey},
    packets::Packets,
    sizes::{self, SizeRow},
};

/// A server's statistics at one point in time.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    general: BTreeMap<String, String>,
    workers: BTreeMap<String, String>,
    own: BTreeMap<String, String>,
    dispatch: BTreeMap<String, String>,
    latency: BTreeMap<String, String>,
    accelerator: BTreeMap<String, String>,
    packets: BTreeMap<String, String>,
    hot: Vec<HotKey>,
}

/// The number of requests of a kind is the sum of these statistics.
const KINDS: [(&str, &[&str]); 8] = [
    ("get", &["cmd_get"]),
    ("set", &["cmd_set"]),
    ("delete", &["delete_hits", "delete_misses"]),
    (
        "incr/decr",
        &["incr_hits", "incr_misses", "decr_hits", "decr_misses"],
    ),
    ("touch", &["cmd_touch"]),
    ("meta", &["cmd_meta"]),
    ("cas", &["cas_hits", "cas_misses", "cas_badval"]),
    ("flush", &["cmd_flush"]),
];
/// The kinds that add up to all requests. The others are contained in one of these, as `cas` is in
/// stores.
const WHOLE_KINDS: [&str; 5] = ["get", "set", "delete", "incr/decr", "touch"];

/// One worker in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Worker {
    /// CPU time as a share of the elapsed time, if the server reports it.
    pub load: Option<f64>,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Open connections.
    pub connections: u64,
    /// What it does under the dispatch policy, if the server reports it.
    pub role: Option<String>,
    /// Connections that wait for it, now and at most.
    pub queue: Option<[u64; 2]>,
}

/// How a server's memory is used, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The limit.
    pub limit: u64,
    /// The used part of the limit. At the limit, an item must be evicted for each new one.
    pub used: u64,
    /// The used memory by purpose, as far as the server reports it.
    pub parts: Vec<(&'static str, u64)>,
}

/// The difference between two samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// The server's name, version, process and uptime.
    pub about: Vec<String>,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Requests per second by kind, without kinds that never occurred.
    pub kinds: Vec<(&'static str, f64)>,
    /// The share of reads that were hits: in the interval, and since the counters started.
    pub hit_ratio: [Option<f64>; 2],
    /// The current number of items.
    pub items: u64,
    /// The current memory.
    pub memory: Memory,
    /// Evictions per second, and since the counters started.
    pub evictions: (f64, u64),
    /// The current number of connections.
    pub connections: u64,
    /// Bytes received and sent per second.
    pub traffic_bytes_per_s: [f64; 2],
    /// CPU time of the process per second: the number of busy cores.
    pub cores_busy: Option<f64>,
    /// Each worker, if the server reports them.
    pub workers: Vec<Worker>,
    /// Requests by the size of their values, if the server reports them.
    pub sizes: Vec<SizeRow>,
    /// Requests for values of this many bytes and more are large.
    pub large_from_bytes: Option<u64>,
    /// Median and 99th percentile of the server's own times of small reads, in microseconds, if it
    /// samples them.
    pub inside_us: Option<[f64; 2]>,
    /// The most popular keys, if the server samples them.
    pub hot: Vec<HotKey>,
    /// The hot-key accelerator, if the server has one.
    pub accelerator: Option<Acceleration>,
    /// Datagrams past the kernel's network stack, if the server takes such.
    pub packets: Option<Packets>,
}

impl Sample {
    /// Requests all statistics that the server may have.
    pub fn take(link: &mut Link) -> Result<Sample> {
        let at = Instant::now();
        let mut ask = |argument| -> Result<Vec<(String, String)>> {
            Ok(link.stats(argument)?.unwrap_or_default())
        };
        let general: BTreeMap<_, _> = ask("")?.into_iter().collect();
        Ok(Sample {
            at,
            general,
            workers: ask("workers")?.into_iter().collect(),
            own: ask("glimmer")?.into_iter().collect(),
            dispatch: ask("dispatch")?.into_iter().collect(),
            latency: ask("latency")?.into_iter().collect(),
            accelerator: ask("accelerator")?.into_iter().collect(),
            packets: ask("packets")?.into_iter().collect(),
            hot: {
                let keys = ask("hotkeys")?.into_iter();
                keys.filter_map(|(key, figures)| HotKey::parse(&key, &figures))
                    .collect()
            },
        })
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.general.get(name)?.parse().ok()
    }

    fn seconds(&self, name: &str) -> Option<f64> {
        self.general.get(name)?.parse().ok()
    }

    /// Whether `earlier` is from the same process and its counters have not been reset since.
    pub fn follows(&self, earlier: &Sample) -> bool {
        let same = self.general.get("pid") == earlier.general.get("pid");
        let counts = ["cmd_get", "cmd_set", "total_connections"];
        same && counts
            .iter()
            .all(|name| self.number(name) >= earlier.number(name))
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Sample) -> Interval {
        let passed = self.at.duration_since(earlier.at);
        let passed_s = passed.max(Duration::from_millis(1)).as_secs_f64();
        let sum = |sample: &Sample, names: &[&str]| -> u64 {
            names.iter().filter_map(|name| sample.number(name)).sum()
        };
        let per_s =
            |names: &[&str]| sum(self, names).saturating_sub(sum(earlier, names)) as f64 / passed_s;
        let kinds = KINDS
            .into_iter()
            .filter(|(_, names)| sum(self, names) > 0)
            .map(|(kind, names)| (kind, per_s(names)));
        let kinds: Vec<_> = kinds.collect();
        let whole = kinds.iter().filter(|(kind, _)| WHOLE_KINDS.contains(kind));
        let ratio = |hits: u64, all: u64| (all > 0).then(|| hits as f64 / all as f64);
        let reads = |sample: &Sample| {
            (
                sum(sample, &["get_hits"]),
                sum(sample, &["get_hits", "get_misses"]),
            )
        };
        let ((hits, all), (hits_before, all_before)) = (reads(self), reads(earlier));
        let cpu = |sample: &Sample| {
            Some(sample.seconds("rusage_user")? + sample.seconds("rusage_system")?)
        };
        let now = |name| self.number(name).unwrap_or(0);
        // Starts from a positive zero: the sum of an empty list is negative zero.
        let requests_per_s = whole.fold(0.0, |sum, (_, rate)| sum + rate);
        let large_from = self.dispatch.get("large_from_bytes");
        Interval {
            about: self.about(),
            requests_per_s,
            kinds: kinds.clone(),
            hit_ratio: [
                ratio(
                    hits.saturating_sub(hits_before),
                    all.saturating_sub(all_before),
                ),
                ratio(hits, all),
            ],
            items: now("curr_items"),
            memory: self.memory(),
            evictions: (per_s(&["evictions"]), now("evictions")),
            connections: now("curr_connections"),
            traffic_bytes_per_s: [per_s(&["bytes_read"]), per_s(&["bytes_written"])],
            cores_busy: cpu(self)
                .zip(cpu(earlier))
                .map(|(now, then)| (now - then).max(0.0) / passed_s),
            workers: self.workers(earlier, passed_s),
            sizes: sizes::rows(&self.dispatch, &earlier.dispatch, passed_s, requests_per_s),
            large_from_bytes: large_from.and_then(|bytes| bytes.parse().ok()),
            inside_us: self.inside_us(),
            hot: self.hot.clone(),
            accelerator: Acceleration::between(
                &self.accelerator,
                &earlier.accelerator,
                passed_s,
                all.saturating_sub(all_before),
            ),
            packets: Packets::between(&self.packets, &earlier.packets, passed_s),
        }
    }

    /// The times of the reads of that size of which most were sampled.
    fn inside_us(&self) -> Option<[f64; 2]> {
        let timed = self.latency.iter().filter_map(|(name, count)| {
            let size = name.strip_prefix("get:")?.strip_suffix(":timed")?;
            Some((count.parse::<u64>().ok()?, size))
        });
        let (_, size) = timed.max()?;
        let time = |name| {
            self.latency
                .get(&format!("get:{size}:{name}"))?
                .parse()
                .ok()
        };
        Some([time("latency_p50_us")?, time("latency_p99_us")?])
    }

    /// memcached's limit applies to its items. This server's limit applies to items, index and
    /// buffers together: buffers are set aside at start, and the index takes its memory from the
    /// items' part. The memory left for items is the unused part of the logs.
    fn memory(&self) -> Memory {
        let items = self.number("bytes").unwrap_or(0);
        let limit = self.number("limit_maxbytes").unwrap_or(0);
        let for_items = self.own.get("log_bytes");
        let for_items: Option<u64> = for_items.and_then(|bytes| bytes.parse().ok());
        let index = self.number("hash_bytes");
        let Some((for_items, index)) = for_items.zip(index) else {
            return Memory {
                limit,
                used: items,
                parts: vec![("items", items)],
            };
        };
        Memory {
            limit,
            used: limit.saturating_sub(for_items.saturating_sub(items)),
            parts: vec![
                ("items", items),
                ("index", index),
                ("buffers", limit.saturating_sub(for_items + index)),
            ],
        }
    }

    fn about(&self) -> Vec<String> {
        let text = |name: &str| self.general.get(name).map_or("?", String::as_str);
        let up = Duration::from_secs(self.number("uptime").unwrap_or(0));
        let mut about = vec![
            format!("version {}", text("version")),
            format!("process {}", text("pid")),
            format!("up {}", humantime::format_duration(up)),
        ];
        // Both can change while the server runs, and `stats glimmer` shows what it began with.
        let access = self.dispatch.get("access").or(self.own.get("access"));
        if let (Some(access), Some(evict)) = (access, self.own.get("evict")) {
            let full = match evict.as_str() {
                "none" => "store",
                rule => rule,
            };
            let policy = self.dispatch.get("policy");
            let policy = policy.map_or(String::new(), |policy| format!(" {policy}"));
            about.insert(0, format!("glimmer {access} {full}{policy}"));
        }
        about
    }

    fn workers(&self, earlier: &Sample, passed_s: f64) -> Vec<Worker> {
        let figure = |sample: &Sample, worker: usize, name: &str| -> Option<u64> {
            let value = sample.workers.get(&format!("worker:{worker}:{name}"))?;
            value.parse().ok()
        };
        let grown = |worker, name| {
            let (now, then) = (figure(self, worker, name)?, figure(earlier, worker, name)?);
            Some(now.saturating_sub(then) as f64 / passed_s)
        };
        let dispatch =
            |worker: usize, name: &str| self.dispatch.get(&format!("worker:{worker}:{name}"));
        let queued = |worker, name| dispatch(worker, name)?.parse::<u64>().ok();
        (0..)
            .map_while(|worker| {
                Some(Worker {
                    connections: figure(self, worker, "curr_connections")?,
                    requests_per_s: grown(worker, "requests")?,
                    load: grown(worker, "cpu_us").map(|us| us / 1e6),
                    role: dispatch(worker, "role").cloned(),
                    queue: queued(worker, "queue_length")
                        .zip(queued(worker, "queue_length_max"))
                        .map(|(now, most)| [now, most]),
                })
            })
            .collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A sample with these lines, taken this long after the first.
    pub fn sample(first: Instant, after_ms: u64, general: &str, workers: &str) -> Sample {
        let map = |text: &str| -> BTreeMap<String, String> {
            let pairs = text.split(", ").filter_map(|pair| pair.split_once('='));
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        Sample {
            at: first + Duration::from_millis(after_ms),
            general: map(general),
            workers: map(workers),
            own: BTreeMap::new(),
            dispatch: BTreeMap::new(),
            latency: BTreeMap::new(),
            accelerator: BTreeMap::new(),
            packets: BTreeMap::new(),
            hot: Vec::new(),
        }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let first = Instant::now();
        let before = sample(
            first,
            0,
            "pid=1, cmd_get=100, get_hits=90, get_misses=10, cmd_set=10, evictions=5, \
             rusage_user=1.0, rusage_system=0.5, bytes_read=0",
            "worker:0:requests=10, worker:0:cpu_us=0, worker:0:curr_connections=3",
        );
        let after = sample(
            first,
            2000,
            "pid=1, cmd_get=300, get_hits=240, get_misses=60, cmd_set=30, evictions=9, \
             rusage_user=1.5, rusage_system=1.0, bytes_read=4096, \
             curr_items=7, bytes=512, limit_maxbytes=1024, uptime=61",
            "worker:0:requests=30, worker:0:cpu_us=500000, worker:0:curr_connections=4",
        );
        assert!(after.follows(&before) && !before.follows(&after));
        let interval = after.since(&before);
        assert_eq!(interval.requests_per_s, 110.0);
        assert_eq!(interval.kinds, [("get", 100.0), ("set", 10.0)]);
        assert_eq!(interval.hit_ratio, [Some(0.75), Some(0.8)]);
        assert_eq!(interval.evictions, (2.0, 9));
        assert_eq!((interval.items, interval.memory.used), (7, 512));
        assert_eq!(interval.memory.limit, 1024);
        assert_eq!(interval.cores_busy, Some(0.5));
        assert_eq!(interval.traffic_bytes_per_s, [2048.0, 0.0]);
        let worker = Worker {
            load: Some(0.25),
            requests_per_s: 10.0,
            connections: 4,
            role: None,
            queue: None,
        };
        assert_eq!(interval.workers, [worker]);
        assert_eq!(interval.about.last().unwrap(), "up 1m 1s");
    }

    #[test]
    fn roles_and_queues_stand_beside_the_workers() {
        let first = Instant::now();
        let workers = "worker:0:requests=10, worker:0:cpu_us=0, worker:0:curr_connections=3";
        let mut before = sample(first, 0, "pid=1", workers);
        before.own = BTreeMap::from([
            ("access".to_owned(), "erew".to_owned()),
            ("evict".to_owned(), "none".to_owned()),
        ]);
        let mut after = before.clone();
        let dispatch = [
            ("policy", "size-aware"),
            ("access", "crcw"),
            ("large_from_bytes", "2048"),
            ("worker:0:role", "standby"),
            ("worker:0:queue_length", "2"),
            ("worker:0:queue_length_max", "9"),
        ];
        let dispatch = dispatch.map(|(name, value)| (name.to_owned(), value.to_owned()));
        after.dispatch = BTreeMap::from(dispatch);
        let interval = after.since(&before);
        assert_eq!(interval.about[0], "glimmer crcw store size-aware");
        assert_eq!(interval.large_from_bytes, Some(2048));
        assert_eq!(interval.workers[0].role.as_deref(), Some("standby"));
        assert_eq!(interval.workers[0].queue, Some([2, 9]));
        let interval = before.since(&before);
        assert_eq!(interval.about[0], "glimmer erew store");
        assert_eq!(interval.workers[0].queue, None);
    }

    #[test]
    fn the_servers_own_times_are_those_of_the_reads_that_are_most() {
        let mut now = sample(Instant::now(), 0, "pid=1", "");
        assert_eq!(now.inside_us(), None);
        let figures = [
            ("get:128:timed", "9"),
            ("get:128:latency_p50_us", "1.0"),
            ("get:128:latency_p99_us", "2.0"),
            ("get:1024:timed", "80"),
            ("get:1024:latency_p50_us", "3.5"),
            ("get:1024:latency_p99_us", "70.0"),
            ("set:128:timed", "900"),
        ];
        let figures = figures.map(|(name, value)| (name.to_owned(), value.to_owned()));
        now.latency = BTreeMap::from(figures);
        assert_eq!(now.inside_us(), Some([3.5, 70.0]));
    }

    #[test]
    fn another_process_or_a_reset_starts_over() {
        let first = Instant::now();
        let before = sample(first, 0, "pid=1, cmd_get=100", "");
        assert!(!sample(first, 1, "pid=2, cmd_get=200", "").follows(&before));
        assert!(!sample(first, 1, "pid=1, cmd_get=0", "").follows(&before));
        assert!(sample(first, 1, "pid=1, cmd_get=100", "").follows(&before));
    }

    #[test]
    fn memory_is_full_when_its_items_part_is() {
        let first = Instant::now();
        let general = |items: u64| {
            format!("pid=1, bytes={items}, hash_bytes=8656256, limit_maxbytes=67108864")
        };
        let memory = |items| {
            let mut sample = sample(first, 0, &general(items), "");
            sample.own = BTreeMap::from([("log_bytes".to_owned(), "51616384".to_owned())]);
            sample.memory()
        };
        let full = memory(51_310_600);
        assert!(full.used as f64 > 0.99 * full.limit as f64, "{full:?}");
        assert_eq!(full.parts[0], ("items", 51_310_600));
        let sum = |memory: &Memory| memory.parts.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert_eq!(full.used, sum(&full));
        let empty = memory(0);
        assert_eq!(empty.used, 67_108_864 - 51_616_384);
        assert_eq!(empty.used, sum(&empty));
    }

    #[test]
    fn nothing_asked_for_is_no_negative_rate() {
        let first = Instant::now();
        let before = sample(first, 0, "pid=1", "");
        let interval = sample(first, 1000, "pid=1", "").since(&before);
        assert!(interval.requests_per_s.is_sign_positive());
    }

    #[test]
    fn what_a_server_does_not_say_is_left_out() {
        let first = Instant::now();
        let before = sample(first, 0, "pid=1", "");
        let interval = sample(first, 1000, "pid=1", "").since(&before);
        assert_eq!(interval.hit_ratio, [None, None]);
        assert_eq!((interval.cores_busy, interval.workers.len()), (None, 0));
        assert!(interval.kinds.is_empty());
    }
}

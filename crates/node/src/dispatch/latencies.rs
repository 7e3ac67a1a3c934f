//! How long the sampled requests of one worker took, by what they did and by the size of their
//! values: since the start, and of late.

use glimmer_base::limits::SERVICE_WINDOW_MS;
use glimmer_base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use glimmer_dispatch::SizeClass;
use glimmer_proto::Verb;

use super::service_times::{BUCKETS, Times, bucket, end_ns};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// It reads a value.
    Get,
    /// It writes a value, or part of one.
    Set,
    /// It deletes an item.
    Delete,
    /// It counts, or changes a lifetime.
    Other,
}

impl Command {
    /// Every one, in the order of their numbers.
    pub const ALL: [Command; 4] = [Command::Get, Command::Set, Command::Delete, Command::Other];

    /// What a verb does.
    pub fn of(verb: &Verb<'_>) -> Command {
        match verb {
            verb if verb.is_read() => Command::Get,
            Verb::Delete | Verb::DeleteIf { .. } => Command::Delete,
            Verb::Increment { .. } | Verb::Decrement { .. } | Verb::Count { .. } => Command::Other,
            Verb::Touch { .. } | Verb::Expire { .. } => Command::Other,
            _ => Command::Set,
        }
    }

    /// Its name for operators.
    pub fn name(self) -> &'static str {
        match self {
            Command::Get => "get",
            Command::Set => "set",
            Command::Delete => "delete",
            Command::Other => "other",
        }
    }
}

/// The sizes of values that are told apart: below each of these, and larger.
pub const SIZES_BELOW: [Option<u32>; 5] = [
    Some(128),
    Some(1 << 10),
    Some(16 << 10),
    Some(256 << 10),
    None,
];

/// Pairs of a command and a size.
const PAIRS: usize = Command::ALL.len() * SIZES_BELOW.len();

fn pair(command: Command, class: SizeClass) -> usize {
    let bytes = class.sizes().start;
    let is_below = |below: &Option<u32>| below.is_none_or(|below| bytes < below);
    let size = SIZES_BELOW.iter().position(is_below);
    command as usize * SIZES_BELOW.len() + size.unwrap_or(SIZES_BELOW.len() - 1)
}

/// The sampled requests of one worker.
///
/// Only the worker writes, with a load and a store. Others read counts that may be a moment old.
#[derive(Debug)]
pub struct Latencies {
    /// Since the start: requests and nanoseconds of each pair.
    requests: [AtomicU64; PAIRS],
    ns: [AtomicU64; PAIRS],
    /// Requests since the start, by pair and bucket.
    all: Box<[AtomicU64]>,
    /// Those of two windows of [`SERVICE_WINDOW_MS`].
    windows: [Box<[AtomicU32]>; 2],
    /// The window that counts, and when it began, in nanoseconds.
    current: AtomicU32,
    began_ns: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let window = || (0..PAIRS * BUCKETS).map(|_| AtomicU32::new(0)).collect();
        Latencies {
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            ns: std::array::from_fn(|_| AtomicU64::new(0)),
            all: (0..PAIRS * BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            windows: [window(), window()],
            current: AtomicU32::new(0),
            began_ns: AtomicU64::new(0),
        }
    }
}

impl Latencies {
    /// Adds requests that have been answered now, after this time.
    pub fn record(
        &self,
        (command, class): (Command, SizeClass),
        requests: u32,
        took_ns: u64,
        now_ns: u64,
    ) {
        let pair = pair(command, class);
        let place = pair * BUCKETS + bucket(took_ns);
        let add = |to: &AtomicU64, count: u64| to.store(to.load(Relaxed) + count, Relaxed);
        add(&self.requests[pair], requests.into());
        add(&self.ns[pair], took_ns.saturating_mul(requests.into()));
        add(&self.all[place], requests.into());
        let count = &self.windows[self.window_at(now_ns)][place];
        count.store(count.load(Relaxed).saturating_add(requests), Relaxed);
    }

    fn window_at(&self, now_ns: u64) -> usize {
        let current = self.current.load(Relaxed) as usize % 2;
        let lasted_ns = now_ns.saturating_sub(self.began_ns.load(Relaxed));
        if lasted_ns < SERVICE_WINDOW_MS * 1_000_000 {
            return current;
        }
        let next = 1 - current;
        let emptied = self.windows[next].iter();
        emptied.for_each(|count| count.store(0, Relaxed));
        self.began_ns.store(now_ns, Relaxed);
        self.current.store(next as u32, Relaxed);
        next
    }

    /// Adds its requests to those of other workers.
    fn add_to(&self, all: &mut [(usize, Latency)]) {
        for (pair, latency) in all {
            let pair = *pair;
            let requests = self.requests[pair].load(Relaxed);
            if requests == 0 {
                continue;
            }
            latency.seconds += self.ns[pair].load(Relaxed) as f64 / 1e9;
            let places = pair * BUCKETS..(pair + 1) * BUCKETS;
            let all = self.all[places.clone()].iter().map(|it| it.load(Relaxed));
            latency.all.add(all);
            for window in &self.windows {
                let late = window[places.clone()].iter();
                latency.late.add(late.map(|it| it.load(Relaxed).into()));
            }
        }
    }
}

/// How long the requests of all workers took that do the same to values of about one size.
#[derive(Clone, Debug)]
pub struct Latency {
    /// What they do.
    pub command: Command,
    /// Their values have fewer bytes than this, and not fewer than the smaller size; `None`: any
    /// number of bytes from the largest size on.
    pub below_bytes: Option<u32>,
    /// The sum of the times of [`Latency::all`], in seconds.
    pub seconds: f64,
    /// The sample since the start.
    pub all: Times,
    /// The sample of the last 30 to 60 seconds.
    pub late: Times,
}

impl Latency {
    /// Those of these commands on these workers, without pairs of which there were no requests.
    pub fn of<'a>(
        workers: impl Iterator<Item = &'a Latencies>,
        commands: &[Command],
    ) -> Vec<Latency> {
        let pairs = commands.iter().flat_map(|&command| {
            SIZES_BELOW
                .iter()
                .enumerate()
                .map(move |(size, &below_bytes)| {
                    let latency = Latency {
                        command,
                        below_bytes,
                        seconds: 0.0,
                        all: Times::default(),
                        late: Times::default(),
                    };
                    (command as usize * SIZES_BELOW.len() + size, latency)
                })
        });
        let mut all: Vec<(usize, Latency)> = pairs.collect();
        workers.for_each(|worker| worker.add_to(&mut all));
        let all = all.into_iter().map(|(_, latency)| latency);
        all.filter(|latency| latency.all.requests() > 0).collect()
    }

    /// The sample since the start as a histogram: for each power of two from a microsecond on, that
    /// many seconds and how many requests took longer than the one before and no longer than this.
    pub fn histogram(&self) -> Vec<(f64, u64)> {
        let mut found = Vec::new();
        let mut end = 1_024;
        for (place, requests) in self.all.counts().enumerate() {
            while end_ns(place) > end && end < LONGEST_NS {
                end *= 2;
            }
            match found.last_mut() {
                Some((last, sum)) if *last == end as f64 / 1e9 => *sum += requests,
                _ => found.push((end as f64 / 1e9, requests)),
            }
        }
        if let Some((last, _)) = found.last_mut() {
            *last = f64::INFINITY;
        }
        found
    }
}

/// Longer times share the last bucket of a histogram.
const LONGEST_NS: u64 = 1_024 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Latencies {
        let latencies = Latencies::default();
        let begin_ns = SERVICE_WINDOW_MS * 1_000_000;
        let get = (Command::Get, SizeClass::of(100));
        latencies.record(get, 99, 10_000, begin_ns);
        latencies.record(get, 1, 5_000_000, begin_ns);
        let large = (Command::Set, SizeClass::of(1 << 20));
        latencies.record(large, 2, 80_000, 3 * begin_ns);
        latencies
    }

    #[test]
    fn requests_are_told_apart_by_command_and_size() {
        let (one, other) = (recorded(), recorded());
        let found = Latency::of([&one, &other].into_iter(), &Command::ALL);
        let pairs: Vec<_> = found
            .iter()
            .map(|it| (it.command, it.below_bytes))
            .collect();
        assert_eq!(pairs, [(Command::Get, Some(128)), (Command::Set, None)]);
        assert_eq!(found[0].all.requests(), 200);
        assert!((found[0].seconds - 2.0 * 0.00599).abs() < 1e-9);
        assert!((found[0].all.percentile_us(0.5).unwrap() / 10.0 - 1.0).abs() < 0.07);
        assert!((found[0].all.percentile_us(0.999).unwrap() / 5_000.0 - 1.0).abs() < 0.07);
        // They are in the window before.
        assert_eq!(found[0].late.requests(), 200);
        assert_eq!(found[1].late.requests(), 4);
    }

    #[test]
    fn a_histogram_has_each_request_once_and_below_its_bound() {
        let latencies = Latencies::default();
        let get = (Command::Get, SizeClass::of(1));
        for ns in [0, 1_023, 1_024, 3_000, 1_000_000, 60_000_000_000] {
            latencies.record(get, 1, ns, 0);
        }
        let found = Latency::of([&latencies].into_iter(), &Command::ALL);
        let histogram = found[0].histogram();
        assert!(histogram.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(histogram.last().unwrap().0, f64::INFINITY);
        let below = |bound: f64| {
            let until = histogram.iter().take_while(|(end, _)| *end <= bound);
            until.map(|(_, requests)| requests).sum::<u64>()
        };
        assert_eq!(below(1_024e-9), 2);
        assert_eq!(below(2_048e-9), 3);
        assert_eq!(below(4_096e-9), 4);
        assert_eq!(below(1_048_576e-9), 5);
        assert_eq!(below(f64::INFINITY), 6);
    }
}

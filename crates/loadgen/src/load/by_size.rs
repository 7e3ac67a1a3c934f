//! Latencies by the length of the values that requests move.
//!
//! Recorded are the classes of Minos (NSDI 2019, §3), which begin at powers of two. Two of them are
//! cut where the paper's workload has its own bounds, so that tiny, small and large requests can be
//! told apart exactly.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::latency::{Latency, histogram_of};

/// The shortest value of [`Group::Small`] in bytes.
pub const SMALL_FROM: u32 = 14;
/// The shortest value of [`Group::Large`] in bytes: it does not fit into one packet.
pub const LARGE_FROM: u32 = 1401;
/// Classes: no value, one for each number of binary digits, and two more for the cuts.
const CLASSES: usize = 35;
/// Significant decimal digits of a latency: an error of 1%, with an eighth of the memory of three.
const DIGITS: u8 = 2;

/// The class of a length.
#[inline]
fn class(bytes: u32) -> usize {
    let digits = (u32::BITS - bytes.leading_zeros()) as usize;
    digits + usize::from(bytes >= SMALL_FROM) + usize::from(bytes >= LARGE_FROM)
}

/// The shortest length of a class in bytes.
fn from_bytes(class: usize) -> u32 {
    let starts = std::iter::once(0).chain((0..u32::BITS).map(|digits| 1 << digits));
    let mut starts: Vec<u32> = starts.chain([SMALL_FROM, LARGE_FROM]).collect();
    starts.sort_unstable();
    starts[class]
}

/// Classes that are shown together, as Minos §5.2 names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Deletes, and reads of keys that were not found.
    NoValue,
    /// 1 to 13 bytes.
    Tiny,
    /// 14 to 1400 bytes.
    Small,
    /// More than 1400 bytes.
    Large,
}

impl Group {
    /// All groups, shortest values first.
    pub const ALL: [Group; 4] = [Group::NoValue, Group::Tiny, Group::Small, Group::Large];

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Group::NoValue => "no value",
            Group::Tiny => "tiny",
            Group::Small => "small",
            Group::Large => "large",
        }
    }

    /// The group of a length.
    pub fn of(bytes: u32) -> Group {
        match bytes {
            0 => Group::NoValue,
            1..SMALL_FROM => Group::Tiny,
            SMALL_FROM..LARGE_FROM => Group::Small,
            LARGE_FROM.. => Group::Large,
        }
    }

    /// Its shortest and its longest length in bytes.
    pub fn bounds(self) -> (u32, u32) {
        match self {
            Group::NoValue => (0, 0),
            Group::Tiny => (1, SMALL_FROM - 1),
            Group::Small => (SMALL_FROM, LARGE_FROM - 1),
            Group::Large => (LARGE_FROM, u32::MAX),
        }
    }
}

/// A histogram for each class. The memory of a class is taken when it is first recorded.
#[derive(Clone, Debug)]
pub struct BySize {
    classes: [Option<Box<Histogram<u64>>>; CLASSES],
}

impl Default for BySize {
    fn default() -> BySize {
        BySize {
            classes: [const { None }; CLASSES],
        }
    }
}

#[cold]
fn empty() -> Box<Histogram<u64>> {
    Box::new(histogram_of(DIGITS))
}

impl BySize {
    /// Records the latency of a request that moved values of this length.
    #[inline]
    pub fn record(&mut self, bytes: u32, latency_ns: u64) {
        self.classes[class(bytes)]
            .get_or_insert_with(empty)
            .saturating_record(latency_ns);
    }

    /// Adds the latencies of another thread or interval.
    pub fn add(&mut self, other: &BySize) {
        for (ours, theirs) in self.classes.iter_mut().zip(&other.classes) {
            if let Some(theirs) = theirs.as_deref() {
                let ours = ours.get_or_insert_with(empty);
                ours.add(theirs).expect("histograms of one shape");
            }
        }
    }

    /// The classes that were recorded: their shortest and longest length, and their latencies in
    /// nanoseconds.
    pub fn classes(&self) -> impl Iterator<Item = (u32, u32, &Histogram<u64>)> {
        let classes = self.classes.iter().enumerate();
        classes.filter_map(|(class, histogram)| {
            let to = match class + 1 < CLASSES {
                true => from_bytes(class + 1) - 1,
                false => u32::MAX,
            };
            Some((from_bytes(class), to, histogram.as_deref()?))
        })
    }

    /// The latencies of several groups together, in nanoseconds.
    pub fn of(&self, groups: &[Group]) -> Histogram<u64> {
        let mut sum = *empty();
        for (from, _, histogram) in self.classes() {
            if groups.contains(&Group::of(from)) {
                sum.add(histogram).expect("histograms of one shape");
            }
        }
        sum
    }

    /// The groups that were recorded.
    pub fn groups(&self) -> Vec<SizeLatency> {
        let all = Group::ALL.into_iter();
        let all = all.map(|group| (group, self.of(&[group])));
        let recorded = all.filter(|(_, histogram)| !histogram.is_empty());
        let shown = recorded.map(|(group, histogram)| {
            let (from_bytes, to_bytes) = group.bounds();
            SizeLatency {
                group: Some(group),
                from_bytes,
                to_bytes,
                latency: Latency::of(&histogram),
            }
        });
        shown.collect()
    }

    /// The single classes that were recorded.
    pub fn each(&self) -> Vec<SizeLatency> {
        let classes = self.classes();
        let shown = classes.map(|(from_bytes, to_bytes, histogram)| SizeLatency {
            group: None,
            from_bytes,
            to_bytes,
            latency: Latency::of(histogram),
        });
        shown.collect()
    }
}

/// The latencies of requests whose values have a length in a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeLatency {
    /// The group, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Shortest length in bytes.
    pub from_bytes: u32,
    /// Longest length in bytes.
    pub to_bytes: u32,
    /// The latencies.
    #[serde(flatten)]
    pub latency: Latency,
}

impl SizeLatency {
    /// Its name in a table.
    pub fn name(&self) -> String {
        let range = match (self.from_bytes, self.to_bytes) {
            (_, 0) => return Group::NoValue.name().to_owned(),
            (from, u32::MAX) => format!("{from} B and more"),
            (from, to) => format!("{from}-{to} B"),
        };
        match self.group {
            Some(group) => format!("{}, {range}", group.name()),
            None => range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn every_length_has_one_class_and_the_groups_end_where_classes_end() {
        let mut rng = SmallRng::seed_from_u64(7);
        let edges = (0..=32).flat_map(|digits| {
            let power = (1u64 << digits).min(u64::from(u32::MAX)) as u32;
            [power.saturating_sub(1), power, power.saturating_add(1)]
        });
        let edges = edges.chain([13, 14, 1400, 1401, 1500, u32::MAX]);
        let drawn: Vec<u32> = (0..10_000)
            .map(|_| rng.random::<u32>() >> rng.random_range(0..32))
            .collect();
        for bytes in edges.chain(drawn) {
            let class = class(bytes);
            assert!(from_bytes(class) <= bytes, "{bytes}");
            assert!(
                class + 1 == CLASSES || bytes < from_bytes(class + 1),
                "{bytes}"
            );
            assert_eq!(Group::of(from_bytes(class)), Group::of(bytes), "{bytes}");
            let (from, to) = Group::of(bytes).bounds();
            assert!((from..=to).contains(&bytes));
        }
    }

    #[test]
    fn latencies_are_found_under_their_lengths() {
        let (mut one, mut other) = (BySize::default(), BySize::default());
        one.record(0, 1_000);
        one.record(13, 2_000);
        one.record(14, 3_000);
        other.record(1400, 3_000);
        other.record(1401, 900_000);
        other.record(1_000_000, 900_000);
        one.add(&other);
        let counts: Vec<_> = one
            .groups()
            .iter()
            .map(|g| (g.group.unwrap(), g.latency.count))
            .collect();
        let expected = [
            (Group::NoValue, 1),
            (Group::Tiny, 1),
            (Group::Small, 2),
            (Group::Large, 2),
        ];
        assert_eq!(counts, expected);
        let small = one.of(&[Group::Tiny, Group::Small]);
        assert_eq!((small.len(), small.max() / 100), (3, 30));
        let ranges: Vec<_> = one
            .each()
            .iter()
            .map(|c| (c.from_bytes, c.to_bytes))
            .collect();
        let expected = [
            (0, 0),
            (8, 13),
            (14, 15),
            (1024, 1400),
            (1401, 2047),
            (524_288, 1_048_575),
        ];
        assert_eq!(ranges, expected);
    }
}

//! Requests by the size of their values, from two samples of `stats dispatch`.

use std::collections::BTreeMap;

use glimmer_notation::{memory, microseconds};

use super::text::{count, percent};

/// The requests for values of one size class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeRow {
    /// Values have fewer bytes, and at least half as many.
    pub below_bytes: u64,
    /// Its share of the requests.
    pub share: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Median and 99th percentile of the sampled requests, in microseconds, if there were some.
    pub percentiles_us: Option<[f64; 2]>,
}

impl SizeRow {
    /// Names of the columns, with their widths.
    pub const HEADS: [(&'static str, usize); 5] = [
        ("values below", 12),
        ("requests/s", 10),
        ("p99", 8),
        ("share", 6),
        ("p50", 8),
    ];

    /// A cell for each of the columns.
    pub fn cells(&self) -> [String; 5] {
        let time = |at: usize| {
            let times = self.percentiles_us;
            times.map_or("-".to_owned(), |times| microseconds(times[at]))
        };
        [
            memory(self.below_bytes as f64),
            count(self.requests_per_s),
            time(1),
            percent(Some(self.share)),
            time(0),
        ]
    }
}

/// All classes that had requests, by size. A server that does not count requests by size still
/// times a sample of them: then the shares are those of the sample, and rates follow from them.
pub fn rows(
    now: &BTreeMap<String, String>,
    earlier: &BTreeMap<String, String>,
    passed_s: f64,
    requests_per_s: f64,
) -> Vec<SizeRow> {
    let classes = now.keys().filter_map(|name| {
        let class = name.strip_prefix("class:")?.split_once(':')?.0;
        class.parse::<u64>().ok()
    });
    let mut classes: Vec<u64> = classes.collect();
    classes.sort_unstable();
    classes.dedup();
    let figure = |sample: &BTreeMap<String, String>, class: u64, name: &str| -> Option<f64> {
        sample.get(&format!("class:{class}:{name}"))?.parse().ok()
    };
    let counted: Vec<f64> = classes
        .iter()
        .map(|&class| {
            let of = |sample| figure(sample, class, "requests").unwrap_or(0.0);
            (of(now) - of(earlier)).max(0.0)
        })
        .collect();
    let timed: Vec<f64> = classes
        .iter()
        .map(|&class| figure(now, class, "timed").unwrap_or(0.0))
        .collect();
    let [all_counted, all_timed] = [&counted, &timed].map(|of| of.iter().sum::<f64>());
    let rows = classes.iter().zip(counted.iter().zip(&timed));
    rows.map(|(&class, (&counted, &timed))| {
        let (share, rate) = match all_counted > 0.0 {
            true => (counted / all_counted, counted / passed_s),
            false => {
                let share = timed / all_timed.max(1.0);
                (share, share * requests_per_s)
            }
        };
        let times = ["latency_p50_us", "latency_p99_us"].map(|name| figure(now, class, name));
        SizeRow {
            below_bytes: class,
            share,
            requests_per_s: rate,
            percentiles_us: match times {
                [Some(p50), Some(p99)] => Some([p50, p99]),
                _ => None,
            },
        }
    })
    .filter(|row| row.share > 0.0 || row.percentiles_us.is_some())
    .collect()
}

/// The rows for a panel of this many, in the order of sizes. The one with most requests stays, and
/// those that had the longest times.
pub fn most_telling(rows: &[SizeRow], room: usize) -> Vec<&SizeRow> {
    let p99 = |row: &SizeRow| row.percentiles_us.map_or(0.0, |times| times[1]);
    let mut shown: Vec<&SizeRow> = rows.iter().collect();
    shown.sort_by(|one, other| p99(other).total_cmp(&p99(one)));
    let most = (0..shown.len()).max_by(|&a, &b| shown[a].share.total_cmp(&shown[b].share));
    if let Some(most) = most {
        shown[..=most].rotate_right(1);
    }
    shown.truncate(room);
    shown.sort_by_key(|row| row.below_bytes);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split(", ").filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn counted_requests_give_rates_and_shares() {
        let before = map("class:128:requests=100, class:1048576:requests=1");
        let now = map(
            "class:128:requests=400, class:1048576:requests=101, class:128:latency_p50_us=8.5, \
             class:128:latency_p99_us=20.0, class:128:timed=7",
        );
        let rows = rows(&now, &before, 2.0, 9.0);
        let small = SizeRow {
            below_bytes: 128,
            share: 0.75,
            requests_per_s: 150.0,
            percentiles_us: Some([8.5, 20.0]),
        };
        assert_eq!(rows[0], small);
        assert_eq!((rows[1].share, rows[1].requests_per_s), (0.25, 50.0));
        assert_eq!(
            rows[1].cells(),
            ["1.0 MiB", "50", "-", "25.0%", "-"].map(str::to_owned)
        );
        assert_eq!(most_telling(&rows, 1), [&small]);
    }

    #[test]
    fn a_sample_gives_shares_where_requests_are_not_counted() {
        let now = map(
            "policy=keyhash, class:64:timed=30, class:64:latency_p50_us=5, \
             class:64:latency_p99_us=9, class:2048:timed=10, class:2048:latency_p50_us=6, \
             class:2048:latency_p99_us=12",
        );
        let rows = rows(&now, &now, 1.0, 1000.0);
        let rates: Vec<_> = rows
            .iter()
            .map(|row| (row.below_bytes, row.share, row.requests_per_s))
            .collect();
        assert_eq!(rates, [(64, 0.75, 750.0), (2048, 0.25, 250.0)]);
    }

    #[test]
    fn a_server_without_the_statistic_has_no_rows() {
        assert_eq!(rows(&map(""), &map(""), 1.0, 10.0), []);
        let odd = map("class:x:requests=1, class:8=3, class:64:timed=zero");
        assert_eq!(rows(&odd, &odd, 1.0, 10.0), []);
    }
}

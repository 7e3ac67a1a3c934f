//! Shows results to people: a table, and a line of bars for the time series.

use std::fmt;

use super::{ABOVE_MIN, Latency, Second, Summary};
use glimmer_measure::report::Table;
use glimmer_notation::{microseconds, per_second};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A shorter part of a second at the end says little about the rate, and has no bar.
const SHORTEST_S: f64 = 0.1;
/// A percentile that is not told.
const UNTOLD: &str = "–";
/// Maximum number of bars in a line.
const WIDTH: usize = 60;

/// Shows values as bars from zero to the largest value. If there are too many values, neighbours
/// share a bar, which shows the larger one.
pub fn sparkline(values: &[f64]) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let share = values.len().div_ceil(WIDTH).max(1);
    let bar = |values: &[f64]| {
        let value = values.iter().copied().fold(0.0, f64::max);
        let step = if largest > 0.0 {
            value / largest * BARS.len() as f64
        } else {
            0.0
        };
        BARS[(step.ceil() as usize).clamp(1, BARS.len()) - 1]
    };
    values.chunks(share).map(bar).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = self.tally;
        writeln!(
            out,
            "{} operations in {:.1} s: {}",
            tally.operations(),
            self.seconds,
            per_second(self.operations_per_s)
        )?;
        writeln!(
            out,
            "hits {}, misses {} (hit ratio {:.2}%), writes {}, deletes {}, refused {}, lost {}",
            tally.hits,
            tally.misses,
            self.hit_ratio * 100.0,
            tally.writes,
            tally.deletes,
            tally.refused,
            tally.lost
        )?;
        match self.steady {
            Some(true) => writeln!(out, "steady after {:.1} s of warm-up", self.warm_up_s)?,
            Some(false) => writeln!(
                out,
                "NOT STEADY: still moving after {:.1} s of warm-up",
                self.warm_up_s
            )?,
            None => {}
        }
        if self.saturated {
            let who = match self.client_saturated {
                true => "CLIENT SATURATED: the load generator could not send all that was due",
                false => "SATURATED: the server could not keep up",
            };
            writeln!(
                out,
                "{who}, so the measurement ended early. Latencies lack what was never answered"
            )?;
        }
        writeln!(out)?;
        if self.latency.count == 0 {
            // Where latencies count by the time at which requests were due, operations do not.
            let operations = match tally.operations() {
                0 => "",
                _ => "; the operations answered requests of the warm-up",
            };
            writeln!(
                out,
                "no latencies: no request of the measured time was answered{operations}"
            )?;
        }
        let mut table = Table::new([
            "latency", "requests", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max",
        ]);
        let rows = [
            ("all", &self.latency),
            ("reads", &self.reads),
            ("writes", &self.writes),
        ];
        // One group would repeat the row of all requests.
        let has_sizes = self.sizes.iter().filter(|size| size.to_bytes > 0).count() > 1;
        let sizes = self.sizes.iter().filter(|_| has_sizes);
        let sizes = sizes.map(|size| (size.name(), &size.latency));
        let rows = rows
            .into_iter()
            .map(|(name, latency)| (name.to_owned(), latency));
        let rows = rows.chain(sizes);
        let rows = rows.chain([
            ("client late".to_owned(), &self.client_late),
            ("client unread".to_owned(), &self.client_unread),
        ]);
        let (mut is_empty, mut is_complete) = (true, true);
        for (name, latency) in rows.filter(|(_, latency)| latency.count > 0) {
            let Latency {
                count,
                mean_us,
                p50_us,
                p90_us,
                p99_us,
                p999_us,
                p9999_us,
                max_us,
            } = *latency;
            let tail = [p90_us, p99_us, p999_us, p9999_us];
            is_complete &= tail.iter().all(Option::is_some);
            is_empty = false;
            let figures = [Some(mean_us), Some(p50_us)].into_iter().chain(tail);
            let figures = figures.chain([Some(max_us)]);
            let figures = figures.map(|us| us.map_or(UNTOLD.to_owned(), microseconds));
            table.row([name, count.to_string()].into_iter().chain(figures));
        }
        if !is_empty {
            writeln!(out, "{table}")?;
        }
        if !is_complete {
            writeln!(
                out,
                "{UNTOLD}: fewer than {ABOVE_MIN} requests lie above this percentile\n"
            )?;
        }
        let series = self.series.iter();
        let series: Vec<&Second> = series.filter(|it| it.seconds >= SHORTEST_S).collect();
        if series.len() > 1 {
            let rates: Vec<f64> = series.iter().map(|it| it.operations_per_s()).collect();
            let p99s: Option<Vec<f64>> = series.iter().map(|it| it.latency.p99_us).collect();
            let longest = || series.iter().map(|it| it.latency.max_us).collect();
            let (name, slow) = match p99s {
                Some(p99s) => ("p99", p99s),
                None => ("max", longest()),
            };
            let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
            writeln!(
                out,
                "operations by second {}  up to {}",
                sparkline(&rates),
                per_second(largest(&rates))
            )?;
            if self.latency.count > 0 {
                writeln!(
                    out,
                    "{name} by second        {}  up to {}",
                    sparkline(&slow),
                    microseconds(largest(&slow))
                )?;
            }
        }
        let busy = self.client_busy * 100.0;
        write!(out, "the busiest client thread used {busy:.0}% of its core")?;
        // An open loop that spins always uses a whole core; its lateness says whether it keeps up.
        // Of few requests, the median counts: one of them may always be late.
        let late = &self.client_late;
        match late.count {
            0 if self.client_busy > 0.9 => writeln!(
                out,
                ": THE CLIENT IS THE LIMIT, not the server; give it more --threads"
            ),
            0 => writeln!(out),
            // Of requests that were mostly lost, the median took for ever.
            _ if self.latency.count > tally.lost
                && late.p99_us.unwrap_or(late.p50_us) > self.latency.p50_us =>
            {
                writeln!(
                    out,
                    ": THE CLIENT IS LATE; lower the rate or give it more --threads"
                )
            }
            _ => {
                let (at, us) = match late.p99_us {
                    Some(us) => ("the 99th percentile", us),
                    None => ("most", late.max_us),
                };
                writeln!(out, ", and was late by {} at {at}", microseconds(us))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Outcome, Tally, record::histogram};

    fn outcome(operations: u64) -> Outcome {
        Outcome {
            tally: Tally {
                hits: operations,
                ..Tally::default()
            },
            warm_up_s: 1.0,
            saturated: true,
            ..Outcome::idle()
        }
    }

    #[test]
    fn a_part_of_a_second_is_shown_by_its_rate() {
        let second = |at_s, seconds, hits| Second {
            at_s,
            seconds,
            tally: Tally {
                hits,
                ..Tally::default()
            },
            latency: Latency::of(&histogram()),
        };
        let outcome = Outcome {
            series: vec![
                second(0, 1.0, 1000),
                second(1, 0.5, 600),
                second(2, 0.001, 500),
            ],
            ..outcome(2100)
        };
        let shown = outcome.summary().to_string();
        assert!(shown.contains("by second ▇█  up to 1200/s\n"), "{shown}");
    }

    #[test]
    fn a_run_without_latencies_says_why() {
        let shown = outcome(58_396).summary().to_string();
        assert!(shown.contains("58396 operations"), "{shown}");
        assert!(shown.contains("\nno latencies: "), "{shown}");
        assert!(!shown.contains("| latency"), "{shown}");
        assert!(shown.contains("of the warm-up\n"), "{shown}");
        let shown = outcome(0).summary().to_string();
        assert!(shown.contains("was answered\n"), "{shown}");
        let mut answered = outcome(1);
        answered.reads.saturating_record(1_000);
        let shown = answered.summary().to_string();
        assert!(!shown.contains("no latencies"), "{shown}");
    }

    #[test]
    fn a_server_that_answers_little_is_not_the_clients_fault() {
        let shown = |answered, lost| {
            let mut outcome = Outcome {
                tally: Tally {
                    lost,
                    ..Tally::default()
                },
                ..outcome(0)
            };
            outcome.reads.saturating_record_n(1_000, answered);
            outcome
                .lateness
                .saturating_record_n(50_000, answered + lost);
            let second = Second {
                at_s: 0,
                seconds: 1.0,
                tally: outcome.tally,
                latency: Latency::of(&outcome.reads),
            };
            outcome.series = vec![second; 2];
            outcome.summary().to_string()
        };
        let nothing = shown(0, 100);
        assert!(!nothing.contains("CLIENT IS LATE"), "{nothing}");
        assert!(!nothing.contains("max by second"), "{nothing}");
        let little = shown(40, 60);
        assert!(!little.contains("CLIENT IS LATE"), "{little}");
        assert!(little.contains("max by second"), "{little}");
        let much = shown(60, 40);
        assert!(much.contains("CLIENT IS LATE"), "{much}");
    }

    #[test]
    fn a_percentile_of_few_requests_is_not_told() {
        let shown = |requests| {
            let mut answered = outcome(requests);
            answered.reads.saturating_record_n(1_000_000, requests);
            let second = Second {
                at_s: 0,
                seconds: 1.0,
                tally: answered.tally,
                latency: Latency::of(&answered.reads),
            };
            answered.series = vec![second; 2];
            answered.lateness.saturating_record_n(1_000, requests);
            answered.summary().to_string()
        };
        let few = shown(999);
        let row = few.lines().find(|line| line.starts_with("| all ")).unwrap();
        assert_eq!(row.matches(UNTOLD).count(), 3, "{few}");
        assert!(few.contains("fewer than 10 requests"), "{few}");
        assert!(
            few.contains("max by second") && few.contains("at most\n"),
            "{few}"
        );
        let many = shown(100_000);
        assert!(
            !many.contains(UNTOLD) && many.contains("p99 by second"),
            "{many}"
        );
        assert!(many.contains("at the 99th percentile\n"), "{many}");
    }

    #[test]
    fn bars_grow_with_their_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0]), "▁▁▄█");
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        let many: Vec<f64> = (0..600).map(f64::from).collect();
        assert_eq!(sparkline(&many).chars().count(), WIDTH);
    }
}

//! The results as tables.

use std::fmt;

use serde::Serialize;

use glimmer_measure::{
    ceiling::{AHEAD, FAR_AHEAD},
    report::Table,
    stats::Spread,
};

/// A machine counts as noisy if repetitions of its own figure spread more widely than this.
const NOISE_MAX: f64 = 0.10;

/// The repetitions of one configuration.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) table: String,
    pub(super) is_ours: bool,
    /// Whether its keys and values may have any length.
    pub(super) holds_any_length: bool,
    pub(super) keys: String,
    pub(super) gets_percent: u32,
    pub(super) cores: usize,
    pub(super) pipeline: String,
    /// Resident memory of the filled table per item.
    pub(super) bytes_per_item: f64,
    /// The share of that memory on huge pages.
    pub(super) huge_part: f64,
    /// The share of reads that found nothing, in the worst repetition.
    pub(super) missed: f64,
    pub(super) operations_per_s: Vec<f64>,
}

/// The machine's random reads with a number of cores.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ceiling {
    pub(super) cores: usize,
    /// [`AHEAD`] at a time.
    pub(super) random_reads_per_s: Vec<f64>,
    /// [`FAR_AHEAD`] at a time.
    pub(super) random_reads_far_ahead_per_s: Vec<f64>,
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub(super) items: u32,
    pub(super) seconds: f64,
    pub(super) repeat: usize,
    pub(super) region_bytes: usize,
    pub(super) region_huge_bytes: u64,
    pub(super) ceilings: Vec<Ceiling>,
    pub(super) rows: Vec<Row>,
}

/// The fastest tables under a load.
struct Lead<'a> {
    ours: &'a Row,
    /// The fastest table by others.
    theirs: &'a Row,
    /// The fastest table by others with items of any length, as in ours.
    alike: Option<&'a Row>,
}

impl Row {
    fn load(&self) -> (&str, u32) {
        (&self.keys, self.gets_percent)
    }

    fn over(&self, other: &Row) -> Spread {
        Spread::of_ratios(&self.operations_per_s, &other.operations_per_s)
    }
}

impl Report {
    /// The repetitions of the machine's measurement that ran next to those of a row.
    fn ceiling_beside(&self, row: &Row) -> &[f64] {
        let mut loads: Vec<_> = self.rows.iter().map(Row::load).collect();
        loads.dedup();
        let place = loads.iter().position(|other| *other == row.load());
        let ceiling = self
            .ceilings
            .iter()
            .find(|ceiling| ceiling.cores == row.cores);
        let all = ceiling.map_or(&[][..], |ceiling| &ceiling.random_reads_per_s);
        &all[place.unwrap_or(0) * self.repeat..][..self.repeat]
    }

    /// The row with the same load and table but a different number of cores or pipeline.
    fn find(&self, row: &Row, cores: usize, pipeline: &str) -> Option<&Row> {
        self.rows.iter().find(|other| {
            (&other.table, other.load()) == (&row.table, row.load())
                && other.cores == cores
                && other.pipeline == pipeline
        })
    }

    /// The first row with the same load and number of cores.
    fn first(&self, row: &Row) -> Option<&Row> {
        let same = |other: &&Row| other.load() == row.load() && other.cores == row.cores;
        self.rows
            .iter()
            .find(same)
            .filter(|first| !std::ptr::eq(*first, row))
    }

    /// The speedup of additional cores, relative to the speedup of random reads.
    fn gain_of_cores(&self, row: &Row) -> Option<Spread> {
        let one = self.find(row, 1, &row.pipeline).filter(|_| row.cores > 1)?;
        let gains = |more: &[f64], one: &[f64]| -> Vec<f64> {
            more.iter().zip(one).map(|(more, one)| more / one).collect()
        };
        let ours = gains(&row.operations_per_s, &one.operations_per_s);
        let machine = gains(self.ceiling_beside(row), self.ceiling_beside(one));
        Some(Spread::of_ratios(&ours, &machine))
    }

    /// For each load and number of cores, our fastest table and the others to compare it with.
    fn leads(&self) -> Vec<Lead<'_>> {
        let mut leads = Vec::new();
        let mut seen = Vec::new();
        for row in &self.rows {
            let place = (row.load(), row.cores);
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            let fastest = |belongs: &dyn Fn(&Row) -> bool| {
                let here = |other: &&Row| (other.load(), other.cores) == place && belongs(other);
                let median = |row: &&Row| Spread::of(&row.operations_per_s).median;
                let rows = self.rows.iter().filter(here);
                rows.max_by(|a, b| median(a).total_cmp(&median(b)))
            };
            let ours = fastest(&|row| row.is_ours);
            let theirs = fastest(&|row| !row.is_ours);
            let alike = fastest(&|row| !row.is_ours && row.holds_any_length);
            leads.extend(ours.zip(theirs).map(|(ours, theirs)| Lead {
                ours,
                theirs,
                alike,
            }));
        }
        leads
    }

    fn ceilings(&self) -> (Table, f64) {
        let mut table = Table::new(["the machine in this run", "cores", "M/s"]);
        let mut noise: f64 = 0.0;
        for ceiling in &self.ceilings {
            let spread = Spread::of(&ceiling.random_reads_per_s);
            noise = noise.max(spread.width());
            let huge = self.region_huge_bytes * 100 / self.region_bytes as u64;
            let mib = self.region_bytes >> 20;
            let far = Spread::of(&ceiling.random_reads_far_ahead_per_s);
            for (in_flight, spread) in [(AHEAD, &spread), (FAR_AHEAD, &far)] {
                table.row([
                    format!(
                        "random 64-byte reads, {in_flight} in flight, {mib} MiB, {huge}% on huge \
                         pages"
                    ),
                    ceiling.cores.to_string(),
                    millions(spread),
                ]);
            }
        }
        (table, noise)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} items of 8-byte keys and 8-byte values; median (min..max) of {} repetitions \
             of {} s. The keyhash is computed in the measured loop, every value read is checked.\n",
            self.items, self.repeat, self.seconds
        )?;
        let (table, noise) = self.ceilings();
        writeln!(out, "{table}")?;
        let whole = self.rows.first().map_or("", |row| &row.pipeline);
        let heads = [
            "table",
            "keys",
            "reads",
            "cores",
            "pipeline",
            "M ops/s",
            "ops per random read, 32 in flight",
            "of the first table",
            "gain of cores over the machine's",
            "of the whole pipeline",
            "missed",
            "bytes per item",
            "on huge pages",
        ];
        let mut table = Table::new(heads);
        for row in &self.rows {
            let whole = self
                .find(row, row.cores, whole)
                .filter(|other| !std::ptr::eq(*other, row));
            let text =
                |spread: Option<Spread>| spread.map_or(String::new(), |spread| spread.text(2));
            table.row([
                row.table.clone(),
                row.keys.clone(),
                format!("{}%", row.gets_percent),
                row.cores.to_string(),
                row.pipeline.clone(),
                millions(&Spread::of(&row.operations_per_s)),
                Spread::of_ratios(&row.operations_per_s, self.ceiling_beside(row)).text(3),
                text(self.first(row).map(|first| row.over(first))),
                text(self.gain_of_cores(row)),
                text(whole.map(|whole| row.over(whole))),
                format!("{:.2}%", row.missed * 100.0),
                format!("{:.0}", row.bytes_per_item),
                format!("{:.0}%", row.huge_part * 100.0),
            ]);
        }
        write!(out, "{table}")?;
        let leads = self.leads();
        if !leads.is_empty() {
            let heads = [
                "keys",
                "reads",
                "cores",
                "our fastest",
                "fastest public table",
                "ratio",
                "fastest with items of any length",
                "ratio",
            ];
            let mut table = Table::new(heads);
            for Lead {
                ours,
                theirs,
                alike,
            } in leads
            {
                let over = |other: &Row| ours.over(other).text(2);
                table.row([
                    ours.keys.clone(),
                    format!("{}%", ours.gets_percent),
                    ours.cores.to_string(),
                    ours.table.clone(),
                    theirs.table.clone(),
                    over(theirs),
                    alike.map_or(String::new(), |alike| alike.table.clone()),
                    alike.map_or(String::new(), over),
                ]);
            }
            write!(out, "\n{table}")?;
        }
        if noise > NOISE_MAX {
            writeln!(
                out,
                "\nNOISY: the machine's random reads spread by {:.0}%; trust ratios only.",
                noise * 100.0
            )?;
        }
        Ok(())
    }
}

fn millions(spread: &Spread) -> String {
    let Spread { median, min, max } = spread;
    format!("{:.1} ({:.1}..{:.1})", median / 1e6, min / 1e6, max / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &str, is_ours: bool, rates: [f64; 2]) -> Row {
        Row {
            table: table.to_owned(),
            is_ours,
            holds_any_length: is_ours || table.ends_with("-bytes"),
            keys: "uniform".to_owned(),
            gets_percent: 95,
            cores: 1,
            pipeline: "whole".to_owned(),
            bytes_per_item: 40.0,
            huge_part: 0.97,
            missed: 0.0,
            operations_per_s: rates.into(),
        }
    }

    #[test]
    fn our_fastest_is_put_beside_the_fastest_of_the_others() {
        let rows = vec![
            row("erew s3fifo", true, [30e6, 20e6]),
            row("erew store", true, [10e6, 10e6]),
            row("dashmap", false, [5e6, 5e6]),
            row("papaya", false, [10e6, 10e6]),
            row("dashmap-bytes", false, [4e6, 4e6]),
            row("papaya-bytes", false, [2e6, 2e6]),
        ];
        let report = Report {
            items: 1,
            seconds: 1.0,
            repeat: 2,
            region_bytes: 1 << 20,
            region_huge_bytes: 0,
            ceilings: vec![Ceiling {
                cores: 1,
                random_reads_per_s: vec![100e6, 100e6],
                random_reads_far_ahead_per_s: vec![140e6, 140e6],
            }],
            rows,
        };
        let leads = report.leads();
        assert_eq!(leads.len(), 1);
        let Lead {
            ours,
            theirs,
            alike,
        } = leads[0];
        assert_eq!((&*ours.table, &*theirs.table), ("erew s3fifo", "papaya"));
        assert_eq!(alike.unwrap().table, "dashmap-bytes");
        let text = report.to_string();
        assert!(
            text.contains("6.25 (5.00..7.50)"),
            "over the fastest of those alike: {text}"
        );
        assert!(text.contains("97%"), "on huge pages: {text}");
        assert!(text.contains("2.50 (2.00..3.00)"), "{text}");
        assert!(
            text.contains("0.21 (0.17..0.25)"),
            "dashmap of the first table: {text}"
        );
        assert!(
            text.contains("0.250 (0.200..0.300)"),
            "of a random read: {text}"
        );
        assert!(
            text.contains("128 in flight") && text.contains("140.0 (140.0..140.0)"),
            "{text}"
        );
    }
}

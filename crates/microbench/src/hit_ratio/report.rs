//! What a comparison of eviction rules has found.

use std::fmt;

use serde::Serialize;

use glimmer_measure::report::Table;

use super::{Options, reference::REFERENCES};

/// Hit ratios of one pattern at one capacity.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The pattern's name on the command line.
    pub pattern: &'static str,
    /// The capacity as a percentage of the keys, or of the bytes of all items.
    pub capacity_percent: f64,
    /// Of our rules, in the order of the options.
    pub ours: Vec<f64>,
    /// Items that our rules put at a tail again, per hundred requests.
    pub reinsertions_percent: Vec<f64>,
    /// Of the simulated rules, in the order of their list.
    pub references: Vec<f64>,
    /// No rule exceeds it, or few do: see [`optimum`](super::reference::optimum).
    pub optimum: f64,
}

impl Row {
    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        let simulated = self.references.iter().chain([&self.optimum]);
        self.ours.iter().chain(simulated).copied()
    }

    /// The hit ratio of a simulated rule.
    pub fn reference(&self, name: &str) -> Option<f64> {
        let place = REFERENCES.iter().position(|rule| rule.name == name)?;
        self.references.get(place).copied()
    }
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Our rules, as on the command line.
    pub rules: Vec<&'static str>,
    /// The simulated rules, as in the literature.
    pub references: Vec<&'static str>,
    keys: u32,
    counted: usize,
    seed: u64,
    /// In the order of the patterns.
    pub rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(options: &Options, rows: Vec<Row>) -> Report {
        Report {
            rules: options.rules.iter().map(|rule| rule.name).collect(),
            references: REFERENCES.iter().map(|rule| rule.name).collect(),
            keys: options.keys,
            counted: options.counted,
            seed: options.seed,
            rows,
        }
    }

    /// One line over all rows: for each column what `of` makes of its hit ratios and of the better
    /// of LRU and S3-FIFO, in the order of the rows.
    fn over_rows(&self, of: impl Fn(&[(f64, f64)]) -> f64) -> Vec<f64> {
        let columns = self.rules.len() + self.references.len() + 1;
        let bar = |row: &Row| {
            let simple = ["strict LRU", "S3-FIFO"].map(|name| row.reference(name).unwrap_or(0.0));
            simple[0].max(simple[1])
        };
        let column = |column: usize| {
            let ratios = self.rows.iter();
            let pairs = ratios.filter_map(|row| Some((row.all().nth(column)?, bar(row))));
            of(&pairs.collect::<Vec<_>>())
        };
        (0..columns).map(column).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "Hit ratios in percent of {} requests, after the same number to warm up; {} keys, seed \
             {}. A share in the first column is the capacity, as a percentage of the keys or of \
             the bytes of all items.\n",
            self.counted, self.keys, self.seed
        )?;
        let ours = self.rules.iter().map(|rule| format!("**{rule}**"));
        let others = self.references.iter().map(|rule| rule.to_string());
        let heads = ["pattern".to_owned()].into_iter().chain(ours).chain(others);
        let mut table = Table::new(heads.chain(["best".to_owned()]));
        let mut add = |name: String, ratios: &mut dyn Iterator<Item = f64>| {
            let cells = ratios.map(|ratio| format!("{:.2}", ratio * 100.0));
            table.row([name].into_iter().chain(cells));
        };
        for row in &self.rows {
            let name = format!("{}, {}%", row.pattern, row.capacity_percent);
            add(name, &mut row.all());
        }
        let mean = |pairs: &[(f64, f64)]| {
            pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len().max(1) as f64
        };
        add("mean".to_owned(), &mut self.over_rows(mean).into_iter());
        let worst = |pairs: &[(f64, f64)]| {
            let behind = pairs.iter().map(|(ratio, bar)| ratio - bar);
            behind.fold(0.0, f64::min)
        };
        let worst = self.over_rows(worst);
        add(
            "worst, against LRU and S3-FIFO".to_owned(),
            &mut worst.into_iter(),
        );
        write!(out, "{table}")
    }
}

//! Counts how many items fit: stores distinct items far beyond the memory limit, then reads all of
//! them.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use crate::{
    client::load::Pass,
    row::{self, Column, Figure, Row},
    servers::{self, Contender, Described, Launch, Server},
};
use glimmer_loadgen::workload::Workload;
use glimmer_measure::{machine, report::Table};

/// What to store, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Servers, one after the other.
    pub servers: Vec<Contender>,
    /// Distinct items.
    pub items: u32,
    /// Items that are stored and read back before the others. If they fit, none should be lost.
    pub first: u32,
    /// Their keys and the lengths of their values. How many keys it has does not matter.
    pub like: Workload,
    /// The memory limit in MiB.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

const FIRST_LOST: Figure = Figure::count("first_lost");
const REFUSED: Figure = Figure::count("refused");
const RESIDENT: Figure = Figure::count("resident");
const RSS_START: Figure = Figure::count("rss_start_bytes");
const RSS: Figure = Figure::count("rss_bytes");
const RSS_PEAK: Figure = Figure::count("rss_peak_bytes");
const FIGURES: [Figure; 6] = [FIRST_LOST, REFUSED, RESIDENT, RSS_START, RSS, RSS_PEAK];

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    servers: Vec<Described>,
    items: u32,
    first: u32,
    like: Workload,
    payload_bytes: f64,
    memory_mib: usize,
    rows: Vec<Row>,
}

/// Fills each server in turn and counts the items that it kept. `progress` receives a line for each
/// step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let servers = Contender::all_described(&options.servers)?;
    let mut rows = Vec::new();
    for contender in &options.servers {
        let arguments = contender.arguments(&options.glimmer_arguments);
        let launch = Launch::evicting(contender.clone(), 1, options.memory_mib, arguments);
        rows.push(measure(options, &launch.start()?, progress)?);
    }
    Ok(Report {
        servers,
        items: options.items,
        first: options.first,
        like: options.like.clone(),
        payload_bytes: payload_bytes(&options.like, options.items),
        memory_mib: options.memory_mib,
        rows,
    })
}

/// Bytes of key and value that an item has on average.
pub fn payload_bytes(like: &Workload, items: u32) -> f64 {
    let bytes = |number| like.key_bytes as u64 + u64::from(like.sizes.of(number));
    let sum: u64 = (0..u64::from(items)).map(bytes).sum();
    sum as f64 / f64::from(items.max(1))
}

impl Report {
    /// By how many bytes each server has grown for each item that it kept.
    pub fn bytes_per_item(&self) -> impl Iterator<Item = (&str, f64)> {
        self.rows.iter().map(|row| {
            let grown = row.counted(RSS).saturating_sub(row.counted(RSS_START));
            (
                &row.name[..],
                grown as f64 / row.counted(RESIDENT).max(1) as f64,
            )
        })
    }
}

fn measure(options: &Options, server: &Server, progress: &dyn Fn(&str)) -> Result<Row> {
    let name = server.name();
    let (rss_start_bytes, _) = machine::resident_bytes(server.pid())?;
    let step = |what: &str, pass, numbers: std::ops::Range<u32>| {
        progress(&format!("{name}: {what} {} items", numbers.len()));
        let mut told = 0;
        server.pass_like(&options.like, pass, numbers, |done| {
            if done / 5_000_000 > told {
                told = done / 5_000_000;
                progress(&format!("{name}: {what}, {done} items done"));
            }
        })
    };
    let (first, items) = (options.first.min(options.items), options.items);
    let mut row = Row::of_server(name, &FIGURES);
    row.count(RSS_START, rss_start_bytes);
    row.count(REFUSED, step("storing", Pass::Write, 0..first)?.refused);
    row.count(
        FIRST_LOST,
        step("reading back", Pass::Read, 0..first)?.misses,
    );
    row.count(REFUSED, step("storing", Pass::Write, first..items)?.refused);
    row.count(RESIDENT, step("reading back", Pass::Read, 0..items)?.hits);
    let (rss_bytes, rss_peak_bytes) = machine::resident_bytes(server.pid())?;
    row.count(RSS, rss_bytes);
    row.count(RSS_PEAK, rss_peak_bytes);
    Ok(row)
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        servers::list(&self.servers, out)?;
        writeln!(
            out,
            "{} distinct items of {}-byte keys and values of {} bytes into {} MiB; every value \
             found was verified.\n",
            self.items, self.like.key_bytes, self.like.sizes, self.memory_mib
        )?;
        let mib = |head: &str, figure| {
            Column::new(head, move |row: &Row| {
                format!("{:.0}", row.counted(figure) as f64 / f64::from(1 << 20))
            })
        };
        let per_item = |row: &Row| row.counted(RSS) as f64 / row.counted(RESIDENT).max(1) as f64;
        let columns = [
            row::name("server"),
            Column::new("resident items", |row: &Row| {
                format!("{:.2} M", row.counted(RESIDENT) as f64 / 1e6)
            }),
            Column::new(format!("lost of the first {}", self.first), |row: &Row| {
                let lost = row.counted(FIRST_LOST);
                let share = lost as f64 / f64::from(self.first.max(1)) * 100.0;
                format!("{lost} ({share:.3}%)")
            }),
            Column::new("refused", |row: &Row| row.counted(REFUSED).to_string()),
            mib("RSS at start MiB", RSS_START),
            mib("RSS MiB", RSS),
            mib("peak MiB", RSS_PEAK),
            Column::new("RSS bytes per item", move |row: &Row| {
                format!("{:.1}", per_item(row))
            }),
            Column::new("of them overhead", move |row: &Row| {
                format!("{:.1}", per_item(row) - self.payload_bytes)
            }),
        ];
        write!(out, "{}", Table::of(&self.rows, columns))?;
        for row in &self.rows {
            let (resident, first) = (row.counted(RESIDENT), self.first);
            if first < self.items && resident < first.into() {
                writeln!(
                    out,
                    "\n{} has no room for the first {first} items: it keeps {resident}.",
                    row.name
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Kind;

    #[test]
    fn a_server_without_room_for_the_first_items_is_told() {
        let shown = |first, items| {
            let mut row = Row::of_server("a server", &FIGURES);
            row.count(RESIDENT, 900);
            let report = Report {
                servers: Vec::new(),
                items,
                first,
                like: crate::client::items(0, 32),
                payload_bytes: 48.0,
                memory_mib: 64,
                rows: vec![row],
            };
            report.to_string()
        };
        let told = "\n\na server has no room for the first 1000 items: it keeps 900.\n";
        assert!(shown(1000, 3000).ends_with(told));
        assert!(!shown(900, 3000).contains("no room"));
        // The limit was not reached, so the others were lost for another reason.
        assert!(!shown(1000, 1000).contains("no room"));
    }

    #[test]
    fn memcached_keeps_what_fits_and_loses_the_rest() {
        if let Err(missing) = Contender::from(Kind::Memcached).version() {
            eprintln!("SKIPPED: {missing:#}");
            return;
        }
        let options = Options {
            servers: vec![Kind::Memcached.into()],
            items: 1_200_000,
            first: 50_000,
            like: crate::client::items(0, 32),
            memory_mib: 64,
            glimmer_arguments: vec![],
        };
        let report = run(&options, &|_| {}).unwrap();
        let row = &report.rows[0];
        let [lost, resident] = [FIRST_LOST, RESIDENT].map(|figure| row.counted(figure));
        let [start, rss, peak] = [RSS_START, RSS, RSS_PEAK].map(|figure| row.counted(figure));
        assert_eq!(lost, 0);
        assert!(!report.to_string().contains("no room"), "{report}");
        assert!((100_000..1_000_000).contains(&resident), "{row:?}");
        assert!(peak >= resident * 48 && start < rss);
    }
}

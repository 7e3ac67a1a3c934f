//! Counts how many items fit: stores distinct items far beyond the memory limit, then reads all of
//! them.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use crate::{
    client::load::Pass,
    servers::{CONNECTIONS_MAX, Kind, Launch, Server},
};
use glimmer_loadgen::workload::Workload;
use glimmer_measure::{machine, report::Table};

/// What to store, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Servers, one after the other.
    pub servers: Vec<Kind>,
    /// Distinct items.
    pub items: u32,
    /// Items that are stored and read back before the others. They are fewer than fit, so none
    /// should be lost.
    pub first: u32,
    /// Their keys and the lengths of their values. How many keys it has does not matter.
    pub like: Workload,
    /// The memory limit in MiB.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// The results of one server.
#[derive(Clone, Debug, Serialize)]
struct Row {
    server: String,
    first_lost: u64,
    refused: u64,
    resident: u64,
    rss_start_bytes: u64,
    rss_bytes: u64,
    rss_peak_bytes: u64,
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
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
    Kind::all_are_there(options.servers.iter().copied())?;
    let mut rows = Vec::new();
    for &kind in &options.servers {
        let limit = format!("{}mb", options.memory_mib);
        let arguments = match kind {
            Kind::Glimmer => options.glimmer_arguments.clone(),
            Kind::Memcached => Vec::new(),
            Kind::Redis | Kind::Valkey => {
                ["--maxmemory", &limit, "--maxmemory-policy", "allkeys-lru"]
                    .map(Into::into)
                    .into()
            }
        };
        let launch = Launch {
            kind,
            threads: 1,
            cores: (0..machine::cores()).collect(),
            memory_mib: options.memory_mib,
            value_bytes: 0,
            udp: false,
            connections_max: CONNECTIONS_MAX,
            arguments,
        };
        rows.push(measure(options, &launch.start()?, progress)?);
    }
    Ok(Report {
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
            let grown = row.rss_bytes.saturating_sub(row.rss_start_bytes);
            (&row.server[..], grown as f64 / row.resident.max(1) as f64)
        })
    }
}

fn measure(options: &Options, server: &Server, progress: &dyn Fn(&str)) -> Result<Row> {
    let name = server.kind().name();
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
    let mut refused = step("storing", Pass::Write, 0..first)?.refused;
    let first_lost = step("reading back", Pass::Read, 0..first)?.misses;
    refused += step("storing", Pass::Write, first..items)?.refused;
    let resident = step("reading back", Pass::Read, 0..items)?.hits;
    let (rss_bytes, rss_peak_bytes) = machine::resident_bytes(server.pid())?;
    let server = name.to_owned();
    Ok(Row {
        server,
        first_lost,
        refused,
        resident,
        rss_start_bytes,
        rss_bytes,
        rss_peak_bytes,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} distinct items of {}-byte keys and values of {} bytes into {} MiB; every value \
             found was verified.\n",
            self.items, self.like.key_bytes, self.like.sizes, self.memory_mib
        )?;
        let mut table = Table::new([
            "server".to_owned(),
            "resident items".to_owned(),
            format!("lost of the first {}", self.first),
            "refused".to_owned(),
            "RSS at start MiB".to_owned(),
            "RSS MiB".to_owned(),
            "peak MiB".to_owned(),
            "RSS bytes per item".to_owned(),
            "of them overhead".to_owned(),
        ]);
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
        for row in &self.rows {
            let per_item = row.rss_bytes as f64 / row.resident.max(1) as f64;
            let lost = row.first_lost as f64 / f64::from(self.first.max(1)) * 100.0;
            table.row([
                row.server.clone(),
                format!("{:.2} M", row.resident as f64 / 1e6),
                format!("{} ({lost:.3}%)", row.first_lost),
                row.refused.to_string(),
                mib(row.rss_start_bytes),
                mib(row.rss_bytes),
                mib(row.rss_peak_bytes),
                format!("{per_item:.1}"),
                format!("{:.1}", per_item - self.payload_bytes),
            ]);
        }
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memcached_keeps_what_fits_and_loses_the_rest() {
        if let Err(missing) = Kind::Memcached.version() {
            eprintln!("SKIPPED: {missing:#}");
            return;
        }
        let options = Options {
            servers: vec![Kind::Memcached],
            items: 1_200_000,
            first: 50_000,
            like: crate::client::items(0, 32),
            memory_mib: 64,
            glimmer_arguments: vec![],
        };
        let report = run(&options, &|_| {}).unwrap();
        let row = &report.rows[0];
        assert_eq!(row.first_lost, 0);
        assert!((100_000..1_000_000).contains(&row.resident), "{row:?}");
        assert!(row.rss_peak_bytes >= row.resident * 48 && row.rss_start_bytes < row.rss_bytes);
    }
}

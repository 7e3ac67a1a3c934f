//! `glimmer bench calibrate`.

use std::{path::PathBuf, time::Duration};

use glimmer_figures::{
    Settings, calibrate,
    calibration::{LINK_GBIT, Transport},
};

use crate::progress::Watch;
use glimmer_cli::vocabulary::{self, repetitions, seconds};

/// Measure the costs with which the figures simulate dispatch
///
/// A server with one worker answers GETs and PUTs, for values of several sizes. Its
/// CPU time per request gives a fixed part and a part per packet of 1400 bytes, and
/// that of small GETs, by how many are in flight, what a look for requests costs.
/// Then loops on one core or two measure what receiving a request, passing it from
/// core to core and counting its size cost.
///
/// `glimmer figure` uses the record that is committed in
/// crates/figures/src/calibration/committed.json, so its pictures are the same
/// everywhere. --costs takes another record.
///
/// Examples:
///
///   glimmer bench calibrate                            about two minutes
///
///   glimmer bench calibrate --json costs.json
///
///   glimmer figure minos-fig3 --costs costs.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Repetitions of every measurement [default: 5]
    #[arg(long, value_parser = repetitions)]
    repeat: Option<u16>,
    /// Seconds that one measurement takes [default: 0.25]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// How requests come to the server: `tcp` with one at a time on each of 32 connections,
    /// `tcp-batches` with 16 at a time on each of 4, `native` with one at a time on each of 32 UDP
    /// sockets, `xdp` or `dpdk` with native requests past the kernel, 8 at a time from each of 4
    /// devices
    #[arg(long, default_value = "tcp-batches")]
    transport: Transport,
    /// The link of a simulated server with 8 cores, in Gb/s
    ///
    /// It is not measured, because loopback has no such bound. The default is the link of Minos'
    /// paper.
    #[arg(long, value_name = "GBIT", default_value_t = LINK_GBIT, value_parser = gbit)]
    link: f64,
    /// Also write the record to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
    /// Use tiny parameters to check that everything runs; the costs are worthless
    #[arg(long)]
    quick: bool,
}

impl Arguments {
    /// Measures and prints the tables.
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = Settings {
            quick: self.quick,
            repeat: self.repeat.map(usize::from),
            measured: self.seconds.map(Duration::from_secs_f64),
            ..Settings::default()
        };
        let calibration = calibrate(
            &settings,
            self.transport,
            self.link,
            &Watch::new("calibrate"),
        )?;
        print!("{calibration}");
        super::write_json(&self.json, &calibration)
    }
}

fn gbit(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(gbit) if (0.001..=10_000.0).contains(&gbit) => Ok(gbit),
        _ => Err("a number from 0.001 to 10000"),
    }
}

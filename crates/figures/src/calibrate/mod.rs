//! Measures the costs with which dispatch is simulated: `glimmer bench calibrate`.

mod service;
mod steps;

use anyhow::Result;
use glimmer_measure::progress::Progress;

use crate::{
    Calibration, Kind, Machine, Run, Settings,
    calibration::{Requests, Transport},
};

pub use service::Bench;

/// Measures this machine, with requests over this transport. A simulated server with 8 cores has a
/// link of this many Gb/s.
pub fn calibrate(
    settings: &Settings,
    transport: Transport,
    link_gbit: f64,
    progress: &dyn Progress,
) -> Result<Calibration> {
    let mut run = Run::new(settings, Kind::Timing, progress)?;
    let mut requests = Requests::default();
    let mut benches = [Bench::start(&run, transport, None)?];
    run.rounds_of_many(run.repeat(5), &mut benches, |bench, run, seed| {
        requests.add(bench.measure(run, seed)?);
        Ok(Vec::new())
    })?;
    run.say("steps between cores");
    let steps = steps::measure(&run)?;
    Ok(Calibration {
        machine: Machine::here(&[]),
        random_reads_per_s: run.finish().random_reads_per_s,
        requests,
        steps,
        link_gbit,
    })
}

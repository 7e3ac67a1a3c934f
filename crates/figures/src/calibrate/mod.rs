//! Measures the costs with which dispatch is simulated: `glimmer bench calibrate`.

mod service;
mod steps;

use anyhow::Result;
use glimmer_measure::progress::Progress;

use crate::{Calibration, Kind, Machine, Run, Settings};

/// Measures this machine. A simulated server with 8 cores has a link of this many Gb/s.
pub fn calibrate(
    settings: &Settings,
    link_gbit: f64,
    progress: &dyn Progress,
) -> Result<Calibration> {
    let mut run = Run::new(settings, Kind::Timing, progress)?;
    let [get, put] = service::measure(&mut run)?;
    run.say("steps between cores");
    let steps = steps::measure(&run)?;
    Ok(Calibration {
        machine: Machine::here(&[]),
        random_reads_per_s: run.finish().random_reads_per_s,
        get,
        put,
        steps,
        link_gbit,
    })
}

//! The accelerator's circuit, §IV and §VI: requests that its stages work on at the same time, what
//! it answers in write mode, and what its transmit ring waits for.

use anyhow::{Context, Result};

use crate::{Columns, Figure, Kind, Needs, Point, Run, Spec, plot::Plot};

/// Cycles of requests in the simulated lookup, which a test of `crates/accel-rtl` counts.
const STAGES: &str = include_str!("../../../../accel/stages.csv");
/// Requests that the simulated circuit answers by mode, which another test counts.
const MODES: &str = include_str!("../../../../accel/modes.csv");

/// Cycles in which the simulated transmit ring has nothing to send, which a third test counts.
const DMA: &str = include_str!("../../../../accel/dma.csv");

const IDLE: &str = "idle cycles in a frame, by latency of memory";
const LATER: &str = "idle cycles after the initial load, by latency of memory";
const AT_ONCE: &str = "requests at the same time";
const ALONE: &str = "cycles of a request that is alone";
const STREAM: &str = "cycles from one request to the next";

/// The figure.
pub struct Stages;

fn series(width_bytes: &str) -> &'static str {
    match width_bytes {
        "1" => "1 byte wide",
        _ => "8 bytes wide",
    }
}

/// The fields of every line but the first.
fn lines(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines().skip(1).map(|line| line.split(',').collect())
}

impl Figure for Stages {
    fn spec(&self) -> Spec {
        Spec {
            name: "accel-stages",
            title: "Stages of the circuit, its modes and its transmit ring",
            source: "§IV-A, §IV-C and §VI-A",
            claim: "The stages for hashing, comparison and streaming can all work at the same \
                    time. In write mode, which a change of the slots needs, no request is served. \
                    The transmit ring reads a line ahead, which hides the latency of memory of 30 \
                    to 50 cycles completely.",
            here: "The circuit in cycle-accurate simulation. `cargo test -p glimmer-accel-rtl` \
                   counts, and compares with `accel/stages.csv`, `accel/modes.csv` and \
                   `accel/dma.csv`, from which this is drawn. Hits in the primary slot with a \
                   value as long as the key, so that the three stages take equally long: one \
                   alone, and one after the other without a gap. The first number over the second \
                   is how many requests the circuit works on at the same time. Twenty requests for \
                   a stored key arrive in each mode; those that are not answered reach the CPU. \
                   Ten frames of 1,514 bytes leave one after the other, from addresses that are \
                   not aligned, and the cycles within them count in which nothing is offered: all \
                   of them, and those after the first 64 bytes. The first line of a frame may hold \
                   few of its bytes, so the second one comes late; that is the initial load.",
            kind: Kind::Exact,
            needs: Needs::one_core(16),
            columns: Columns {
                panel: "what",
                series: "circuit",
                x: "bytes of key and of value, or cycles",
                y: "as the panel says",
            },
            plot: Plot::bars("bytes of key and of value, or cycles", "").columns(3),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        for line in lines(STAGES) {
            let &[width, bytes, alone, stream] = &line[..] else {
                anyhow::bail!("a line of cycles has four fields");
            };
            let [alone, stream] = [alone, stream].map(|cycles| cycles.parse::<f64>());
            let (alone, stream) = (alone.context("cycles")?, stream.context("cycles")?);
            for (panel, value) in [(ALONE, alone), (STREAM, stream), (AT_ONCE, alone / stream)] {
                run.add(Point::new(panel, series(width), bytes, value));
            }
        }
        for line in lines(MODES) {
            let &[width, mode, requests, answered] = &line[..] else {
                anyhow::bail!("a line of modes has four fields");
            };
            let [requests, answered] = [requests, answered].map(|count| count.parse::<f64>());
            let percent = 100.0 * answered.context("answers")? / requests.context("requests")?;
            let panel = format!("answered in {mode} mode, %");
            run.add(Point::new(panel, series(width), "", percent));
        }
        for line in lines(DMA) {
            let &[width, latency, frames, idle, later] = &line[..] else {
                anyhow::bail!("a line of idle cycles has five fields");
            };
            let frames = frames.parse::<f64>().context("frames")?;
            for (panel, cycles) in [(IDLE, idle), (LATER, later)] {
                let cycles = cycles.parse::<f64>().context("cycles")?;
                run.add(Point::new(panel, series(width), latency, cycles / frames));
            }
        }
        Ok(())
    }
}

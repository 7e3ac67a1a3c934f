//! The accelerator's circuit, Figure 12: what it takes of the FPGA.

use anyhow::Result;
use serde::Deserialize;

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
};

/// What `cargo xtask synth --record` has written.
const SYNTHESIS: &str = include_str!("../../../../accel/synthesis.json");

const LUTS: &str = "LUTs";
const REGISTERS: &str = "registers";
const BLOCK_RAMS: &str = "block RAMs of 36 kbit";
const CLOCK: &str = "clock of an ECP5, MHz";

const NARROW: &str = "1 byte wide";
const WIDE: &str = "8 bytes wide";
const BOTH: &str = "both";
const PARTS: [&str; 2] = ["accelerator", "traffic manager"];

/// The increment of the utilization of an XC7Z045, which has 218,600 LUTs, 437,200 registers and
/// 545 block RAMs.
const INCREMENT: [(&str, f64); 3] = [(LUTS, 10_300.0), (REGISTERS, 8_000.0), (BLOCK_RAMS, 230.0)];
/// The paper's clock.
const PAPER_MHZ: f64 = 50.0;

#[derive(Deserialize)]
struct Record {
    sizes: Vec<Size>,
    clocks: Vec<Clock>,
}

#[derive(Deserialize)]
struct Size {
    part: String,
    width_bytes: u32,
    luts: f64,
    flip_flops: f64,
    ramb36: f64,
}

#[derive(Deserialize)]
struct Clock {
    part: String,
    width_bytes: u32,
    mhz: f64,
}

fn series(width_bytes: u32) -> &'static str {
    match width_bytes {
        1 => NARROW,
        _ => WIDE,
    }
}

/// The figure.
pub struct Resources;

impl Figure for Resources {
    fn spec(&self) -> Spec {
        Spec {
            name: "accel-fig12",
            title: "What the circuit takes of the FPGA",
            source: "Hardware Acceleration of Key-Value Stores, Figure 12, §V-D",
            claim: "Accelerator and traffic manager take 4.7% of an XC7Z045's LUTs, 1.8% of its \
                    registers and 42% of its memory, at 50 MHz.",
            here: "The paper's bars are the difference between its systems with and without \
                   accelerator and traffic manager. Ours are what Yosys makes of each for Xilinx' \
                   7 series, at 1,024 slots and 512 KiB for values, as `cargo xtask synth` \
                   prints it. The paper does not say how large its memories are. Yosys places \
                   nothing, so that packing may change the numbers a little. The clock is of an \
                   ECP5, placed and routed by nextpnr with 256 slots and 64 KiB, since the ECP5 \
                   has less memory; timing of the 7 series needs the vendor's tools. The version \
                   of 8 bytes has no counterpart in the paper.",
            kind: Kind::Exact,
            needs: Needs::one_core(0),
            columns: Columns {
                panel: "resource",
                series: "width",
                x: "part",
                y: "number",
            },
            plot: Plot::bars("", "").columns(2).paper(
                "Figure 12, the increment; the clock is §V's",
                INCREMENT
                    .into_iter()
                    .map(|(resource, number)| Mark::bar(resource, NARROW, BOTH, number))
                    .chain(PARTS.map(|part| Mark::bar(CLOCK, NARROW, part, PAPER_MHZ)))
                    .collect(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let record: Record = serde_json::from_str(SYNTHESIS)?;
        for width_bytes in [1, 8] {
            let name = series(width_bytes);
            let mut sums = [0.0; 3];
            for part in PARTS {
                let is_it = |size: &&Size| (&*size.part, size.width_bytes) == (part, width_bytes);
                let Some(size) = record.sizes.iter().find(is_it) else {
                    continue;
                };
                let numbers = [size.luts, size.flip_flops, size.ramb36];
                for ((resource, _), (number, sum)) in
                    INCREMENT.iter().zip(numbers.into_iter().zip(&mut sums))
                {
                    run.add(Point::new(*resource, name, part, number));
                    *sum += number;
                }
            }
            for ((resource, _), sum) in INCREMENT.iter().zip(sums) {
                run.add(Point::new(*resource, name, BOTH, sum));
            }
        }
        for clock in &record.clocks {
            let name = series(clock.width_bytes);
            run.add(Point::new(CLOCK, name, &*clock.part, clock.mhz));
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (resource, _) in INCREMENT {
            let wide = data.median(resource, WIDE, BOTH);
            let what = format!("8 bytes wide: {resource} of accelerator and traffic manager");
            shape.beside(&what, "", wide);
        }
        for part in PARTS {
            let wide = data.median(CLOCK, WIDE, part);
            let wide = wide.map(|mhz| format!("{mhz:.0}"));
            shape.beside(&format!("8 bytes wide: {part}, MHz"), "", wide);
        }
    }
}

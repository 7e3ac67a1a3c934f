//! The committed figures, and the bars that they must stay below or above.

use anyhow::ensure;
use serde::Serialize;
use std::fmt;

/// `crates/figures` includes it.
const FILE: &str = "accel/synthesis.json";
/// The increment in the paper's Figure 12, for an accelerator and a traffic manager of 1 byte.
const LUTS_MAX: u64 = 10_300;
const FLIP_FLOPS_MAX: u64 = 8_000;
const RAMB36_MAX: f64 = 230.0;
/// The paper's clock.
const MHZ_MIN: f64 = 50.0;
/// The parts whose sum is compared with the paper's increment. Its base system has the rings.
const COMPARED: [&str; 2] = ["accelerator", "traffic manager"];

/// All figures.
#[derive(Serialize)]
pub struct Record {
    /// Tools with their versions.
    pub tools: Vec<String>,
    /// Slots at which sizes were taken.
    pub slots: u32,
    /// Bytes for values, likewise.
    pub value_bytes: u32,
    /// Sizes on Xilinx' 7 series.
    pub sizes: Vec<Size>,
    /// Clocks on an ECP5.
    pub clocks: Vec<Clock>,
}

/// What a part takes.
#[derive(Serialize)]
pub struct Size {
    /// The part.
    pub part: String,
    /// Bytes of the datapath.
    pub width_bytes: u32,
    /// 6-input LUTs.
    pub luts: u64,
    /// Flip-flops.
    pub flip_flops: u64,
    /// Block RAMs of 36 kbit.
    pub ramb36: f64,
}

/// How fast a part is.
#[derive(Serialize)]
pub struct Clock {
    /// The part.
    pub part: String,
    /// Bytes of the datapath.
    pub width_bytes: u32,
    /// Slots, fewer than above, since the ECP5 has less memory.
    pub slots: u32,
    /// Bytes for values, likewise.
    pub value_bytes: u32,
    /// Megahertz after routing.
    pub mhz: f64,
}

impl Record {
    /// Fails if the narrow circuit is larger than the paper's or slower than its clock.
    pub fn judge(&self) -> anyhow::Result<()> {
        let (luts, flip_flops, ramb36) = self.sum(1);
        ensure!(luts <= LUTS_MAX, "{luts} LUTs: more than {LUTS_MAX}");
        ensure!(
            flip_flops <= FLIP_FLOPS_MAX,
            "{flip_flops} flip-flops: more than {FLIP_FLOPS_MAX}"
        );
        ensure!(
            ramb36 <= RAMB36_MAX,
            "{ramb36} RAMB36: more than {RAMB36_MAX}"
        );
        for clock in self.clocks.iter().filter(|clock| clock.width_bytes == 1) {
            ensure!(
                clock.mhz >= MHZ_MIN,
                "{} of {} bytes: {} MHz, and {MHZ_MIN} are wanted",
                clock.part,
                clock.width_bytes,
                clock.mhz
            );
        }
        Ok(())
    }

    /// Writes the committed file.
    pub fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(FILE, text + "\n")?;
        println!("{FILE} written");
        Ok(())
    }

    /// LUTs, flip-flops and block RAMs of accelerator and traffic manager.
    fn sum(&self, width_bytes: u32) -> (u64, u64, f64) {
        let parts = self
            .sizes
            .iter()
            .filter(|size| size.width_bytes == width_bytes && COMPARED.contains(&&*size.part));
        parts.fold((0, 0, 0.0), |(luts, flip_flops, ramb36), size| {
            (
                luts + size.luts,
                flip_flops + size.flip_flops,
                ramb36 + size.ramb36,
            )
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} slots, {} KiB for values; Xilinx 7 series, by Yosys. The clock is an ECP5's, by \
             nextpnr,\nwith {SMALLER}; 7-series timing needs the vendor's tools.",
            self.slots,
            self.value_bytes >> 10,
            SMALLER = self
                .clocks
                .first()
                .map_or("less memory".to_owned(), |clock| {
                    format!("{} slots and {} KiB", clock.slots, clock.value_bytes >> 10)
                })
        )?;
        writeln!(
            out,
            "\n{:<18} {:>5} {:>7} {:>7} {:>7} {:>6}",
            "part", "bytes", "LUT", "FF", "RAMB36", "MHz"
        )?;
        for size in &self.sizes {
            let clock = self
                .clocks
                .iter()
                .find(|clock| clock.part == size.part && clock.width_bytes == size.width_bytes);
            let mhz = clock.map_or(String::new(), |clock| format!("{:.0}", clock.mhz));
            writeln!(
                out,
                "{:<18} {:>5} {:>7} {:>7} {:>7.1} {mhz:>6}",
                size.part, size.width_bytes, size.luts, size.flip_flops, size.ramb36
            )?;
        }
        for width in [1, 8] {
            let (luts, flip_flops, ramb36) = self.sum(width);
            writeln!(
                out,
                "{:<18} {width:>5} {luts:>7} {flip_flops:>7} {ramb36:>7.1}",
                "both but the rings"
            )?;
        }
        write!(
            out,
            "{:<18} {:>5} {LUTS_MAX:>7} {FLIP_FLOPS_MAX:>7} {RAMB36_MAX:>7.1} {MHZ_MIN:>6.0}",
            "the paper's", 1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(luts: u64, mhz: f64) -> Record {
        let size = |part: &str, width_bytes, luts| Size {
            part: part.into(),
            width_bytes,
            luts,
            flip_flops: 1_000,
            ramb36: 100.0,
        };
        Record {
            tools: Vec::new(),
            slots: 1024,
            value_bytes: 512 << 10,
            sizes: vec![
                size(COMPARED[0], 1, luts),
                size(COMPARED[1], 1, 300),
                size(COMPARED[1], 8, 100_000),
                size("receive ring", 1, 100_000),
            ],
            clocks: vec![Clock {
                part: COMPARED[0].into(),
                width_bytes: 1,
                slots: 256,
                value_bytes: 65_536,
                mhz,
            }],
        }
    }

    #[test]
    fn the_narrow_ones_are_judged_together_and_without_the_rings() {
        assert!(record(10_000, 50.0).judge().is_ok());
        assert!(record(10_001, 50.0).judge().is_err());
        assert!(record(10_000, 49.0).judge().is_err());
    }
}

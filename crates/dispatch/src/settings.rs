//! What an operator can set about policies.

use crate::{Cost, LargeCores};
use glimmer_base::limits::{DISPATCH_BATCH, DISPATCH_EPOCH_MS, LARGE_BYTES_MIN};
use std::str::FromStr;

/// The settings of all policies. A policy takes from them what concerns it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Percentage of requests that are small under size-aware sharding.
    pub percentile: f64,
    /// Length of an epoch in milliseconds: requests are counted by size, and then there is a plan.
    pub epoch_ms: u64,
    /// Weight of the latest epoch in the moving average, above 0 and at most 1.
    pub alpha: f64,
    /// Most requests that a core reads from its own RX queue in one turn.
    pub batch: usize,
    /// What a request costs, by its size.
    pub cost: Cost,
    /// The rule for the number of large cores.
    pub large_cores: LargeCores,
    /// Requests for values of fewer bytes are always small.
    pub large_min: u32,
}

impl Settings {
    /// The settings of the paper, where it has them.
    pub const DEFAULT: Settings = Settings {
        percentile: 99.0,
        epoch_ms: DISPATCH_EPOCH_MS,
        alpha: 0.9,
        batch: DISPATCH_BATCH,
        cost: Cost::Packets,
        large_cores: LargeCores::Auto,
        large_min: LARGE_BYTES_MIN,
    };
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::DEFAULT
    }
}

impl FromStr for Cost {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Cost, Self::Err> {
        match text {
            "packets" => Ok(Cost::Packets),
            "bytes" => Ok(Cost::Bytes),
            "constant+bytes" => Ok(Cost::ConstantAndBytes),
            _ => Err("packets, bytes or constant+bytes"),
        }
    }
}

impl FromStr for LargeCores {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LargeCores, Self::Err> {
        match text {
            "auto" => Ok(LargeCores::Auto),
            "paper" => Ok(LargeCores::Paper),
            number => match number.parse() {
                Ok(cores @ 1..) => Ok(LargeCores::Fixed(cores)),
                _ => Err("auto, paper or a number of workers from 1 on"),
            },
        }
    }
}

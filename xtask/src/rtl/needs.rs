//! Programs that the circuit's checks need.

use crate::tools::Tool;

pub const TOOLS: &[Tool] = &[
    Tool {
        probe: &["verilator"],
        packages: &["verilator"],
        without: "lint and simulation of the circuit",
    },
    Tool {
        probe: &["c++"],
        packages: &["g++"],
        without: "simulation of the circuit",
    },
    Tool {
        probe: &["yosys"],
        packages: &["yosys"],
        without: "proofs about the circuit",
    },
    Tool {
        probe: &["yosys-smtbmc"],
        packages: &["yosys"],
        without: "proofs about the circuit",
    },
    Tool {
        probe: &["z3"],
        packages: &["z3"],
        without: "proofs about the circuit",
    },
    Tool {
        probe: &["ip", "-V"],
        packages: &["iproute2"],
        without: "the simulated circuit between a client and a server",
    },
];

/// Synthesis alone takes these; Python's package index has the rest.
pub const SYNTHESIS: &[Tool] = &[Tool {
    probe: &["python3", "-c", "import ensurepip"],
    packages: &["python3", "python3-venv"],
    without: "synthesis of the circuit",
}];

//! Floor 3: the hot-key accelerator's circuit (`accel/rtl/`) in simulation. Verilator turns a top
//! module into C++, a C++ compiler makes a library of it, and this crate clocks it.
//! `docs/accelerator-rtl.md` describes the circuit.
//!
//! | file | idea |
//! | --- | --- |
//! | `tops` | the tops that can be built: name, sources, shim |
//! | `tools` | which programs that takes, and how to get them |
//! | `verilate` | top, parameters and planted bug in; library out, kept under `target/rtl` |
//! | `model` | a library, loaded and clocked |
//! | `random` | the seed of a test |
//! | `memory` | the CPU's memory behind the circuit's memory port |
//! | `dma/` | the ports of the DMA engine's rings |
//! | `lookup/` | the lookup's ports, and a device that drives them |
//! | `traffic/` | the traffic manager's ports |
//! | `top/` | the whole circuit's ports |
//!
//! `shims/` has a C++ file for each top: the circuit's ports as a flat C interface.

pub mod dma;
pub mod lookup;
pub mod memory;
pub mod model;
pub mod random;
pub mod tools;
pub mod top;
pub mod tops;
pub mod traffic;
pub mod verilate;

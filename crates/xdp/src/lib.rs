//! Floor 2: the hot-key accelerator's packet program. This crate loads it into the kernel, shares
//! the memory of the slots with it, and attaches it to a network interface. The program itself is C
//! and lies in `accel/xdp`; `docs/accelerator.md` explains it.
//!
//! | file | idea |
//! | --- | --- |
//! | `settings` | what the program is told, and within which limits |
//! | `error` | why it cannot be loaded or attached |
//! | `program` | the program in the kernel: loads it, and tries it on a frame |
//! | `maps` | the program's maps as the accelerator's memory |
//! | `attached` | a program at an interface |
//! | `link` | what ties both together, so that nothing is left when the process ends |
//! | `interface` | what an interface says of itself |
//! | `veth` | whether the replies of a program reach anybody |
#![cfg(target_os = "linux")]

mod attached;
mod error;
mod interface;
mod link;
mod maps;
mod program;
mod settings;
mod veth;

pub use attached::{Attached, attach};
pub use error::Error;
pub use maps::memory_bytes;
pub use program::{Program, TestRun, Verdict, test_run};
pub use settings::{Growth, Limits, Mode, NOT_HOSTS_MAX, Settings, Sources};
pub use veth::sends_to_nobody;

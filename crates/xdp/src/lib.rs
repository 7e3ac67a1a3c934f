//! Floor 2: the hot-key accelerator's packet program. This crate loads it into the kernel, shares
//! the memory of the slots with it, and attaches it to a network interface. The program itself is C
//! and lies in `accel/xdp`; `docs/accelerator.md` explains it.
//!
//! | file | idea |
//! | --- | --- |
//! | `settings` | what the program is told, and within which limits |
//! | `error` | why it cannot be attached |
//! | `attached` | a program at an interface |
#![cfg(target_os = "linux")]

mod attached;
mod error;
mod settings;

pub use attached::{Attached, attach, memory_bytes};
pub use error::Error;
pub use settings::{Mode, Settings, Sources};

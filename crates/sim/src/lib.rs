//! Floor 5: the simulator. It runs real workers, the real engine and real tables with real clients,
//! on one thread, in virtual time, from one seed.
//!
//! A seed becomes a [`Scenario`]: a server, clients with the operations of each, and faults. The
//! [`world`] lets workers and clients act one after the other; who acts next, and what the network
//! does, follows from the seed. What clients asked and were answered is a [`history`], which has to
//! be [linearizable](linear) key by key. A scenario that fails is [shrunk](shrink), and its history
//! printed.
//!
//! | file | idea |
//! | --- | --- |
//! | [`scenario`] | a seed becomes a server, clients and faults |
//! | [`clients`] | clients of every protocol, and one that watches |
//! | [`world`] | who acts next, and what has to hold meanwhile |
//! | [`clock`] | virtual time |
//! | `memory` | the file that a server's memory lies in |
//! | [`history`] | what was asked and answered, and how it reads |
//! | [`linear`] | whether there is an order of a key's operations that explains every answer |
//! | [`shrink`] | the smallest scenario that still fails |

pub mod clients;
pub mod clock;
mod encrypted;
pub mod history;
#[cfg(test)]
mod latency_tests;
pub mod linear;
mod memory;
pub mod scenario;
mod server;
pub mod shrink;
pub mod world;

pub use scenario::Scenario;
pub use world::{Report, run};

//! Floor 4: comparisons of whole servers. A comparison starts the servers ([`servers`]), drives
//! them in turn with the load generator, and prints ratios. It covers throughput and latency
//! ([`versus`]), the native protocol ([`native`]), memory ([`footprint`]), hit ratios of a recorded
//! trace ([`replayed`]), small requests beside large ones ([`tail`]), the hot-key accelerator
//! ([`accelerator`]), what carries datagrams ([`transports`]), and behaviour towards hostile
//! clients ([`abuse`]). Ceilings stand beside them ([`trivial`], [`bare`]). Servers and clients run
//! on loopback or in network namespaces ([`lab`]).

pub mod abuse;
pub mod accelerator;
pub mod bare;
pub mod client;
pub mod echo;
#[cfg(test)]
#[path = "../tests/support/enough.rs"]
mod enough;
pub mod footprint;
pub mod itself;
pub mod lab;
pub mod native;
pub mod replayed;
mod row;
pub mod servers;
#[cfg(test)]
#[path = "../../../tests/support/skipped.rs"]
mod skipped;
pub mod tail;
pub mod transports;
pub mod trivial;
pub mod versus;

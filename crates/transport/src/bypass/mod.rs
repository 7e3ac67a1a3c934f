//! What transports past the kernel's stack share: frames, how peers are reached, and what is
//! counted.

pub mod figures;
pub mod routes;
pub mod wire;

//! Floor 0: tools for every measurement of a server or a table. They cover cores and CPU time
//! ([`machine`]), disturbances ([`noise`]), the machine's own limit ([`ceiling`]), repetitions as a
//! median with its spread ([`stats`]), tables ([`report`]), and ports and network namespaces for
//! servers ([`ports`], [`namespaces`]).

pub mod ceiling;
pub mod machine;
pub mod namespaces;
pub mod noise;
pub mod ports;
pub mod progress;
pub mod report;
pub mod stats;

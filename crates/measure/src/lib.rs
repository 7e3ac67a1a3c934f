//! Floor 0: what every measurement needs, of a server or of a table: cores and CPU time
//! ([`machine`]), what disturbed it ([`noise`]), what the machine itself can do ([`ceiling`]), and
//! repetitions as a median with its spread ([`stats`]) in a table ([`report`]).

pub mod ceiling;
pub mod machine;
pub mod noise;
pub mod progress;
pub mod report;
pub mod stats;

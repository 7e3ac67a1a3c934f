//! The traffic manager in simulation.

mod bench;
mod cycles;
mod directed;
#[path = "../../../hotset/tests/support/frames.rs"]
mod frames;
mod item;
mod lookups;
mod oracle;
mod planted;
mod rooms;
mod streams;
mod twin;

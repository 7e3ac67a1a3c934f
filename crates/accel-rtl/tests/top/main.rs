//! The whole circuit in simulation: frames at the MAC, commands, and a driver of the rings.

mod bench;
#[path = "../../../hotset/tests/support/frames.rs"]
mod frames;
#[path = "../traffic/item.rs"]
mod item;
#[path = "../traffic/oracle.rs"]
mod oracle;
mod requests;
#[allow(dead_code, reason = "shared with the traffic manager's tests")]
#[path = "../traffic/streams.rs"]
mod streams;

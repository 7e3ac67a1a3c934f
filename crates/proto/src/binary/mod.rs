//! Memcached's binary protocol: bytes to requests, and replies to bytes.
//!
//! | file | idea |
//! | --- | --- |
//! | `opcode` | the commands' numbers, which of them are quiet, which show the key |
//! | `header` | the 24 bytes in front of every packet, and what of them a reply repeats |
//! | `parser` | from one packet to the next: what is complete, what is malformed, what is swallowed |
//! | `command` | what each command makes of its packet |
//! | `control` | answers to commands without a key |
//! | [`emit`] | replies |
//! | `outcome` | outcomes in the words of the binary protocol |
//!
//! The protocol is memcached's `protocol_binary.xml`; what a malformed packet is answered with is memcached 1.6's behaviour. One thing
//! differs on purpose: behind an unknown command exactly its body is skipped, where memcached skips key and extras twice.

mod command;
mod control;
pub mod emit;
mod header;
pub mod opcode;
mod outcome;
mod parser;

pub use control::Words;
pub use emit::Status;
pub use header::Header;
pub use parser::Parser;

/// The first byte of every request, by which a connection is known to speak this protocol. No text command begins with it.
pub const MAGIC_REQUEST: u8 = 0x80;
/// The first byte of every reply.
pub const MAGIC_REPLY: u8 = 0x81;

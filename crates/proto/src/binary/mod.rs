//! Memcached's binary protocol: parses requests and writes replies.
//!
//! | file | idea |
//! | --- | --- |
//! | `opcode` | the opcodes, which of them are quiet, which show the key |
//! | `header` | the 24-byte header of every packet, and the fields that a reply repeats |
//! | `parser` | the state between two packets: complete, malformed and swallowed ones |
//! | `command` | parses the packet of each command |
//! | `control` | answers to commands without a key |
//! | [`emit`] | replies |
//! | `outcome` | writes outcomes as replies of the binary protocol |
//!
//! The protocol follows memcached's `protocol_binary.xml`, and replies to malformed packets are
//! those of memcached 1.6. There is one deliberate difference: after an unknown command, exactly
//! its body is skipped; memcached skips key and extras twice.

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

/// The first byte of every request, which identifies the protocol of a connection. No text command
/// begins with it.
pub const MAGIC_REQUEST: u8 = 0x80;
/// The first byte of every reply.
pub const MAGIC_REPLY: u8 = 0x81;

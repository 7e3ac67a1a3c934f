//! Memcached's classic text protocol: bytes to requests, and replies to bytes.
//!
//! | file | idea |
//! | --- | --- |
//! | `step` | what the parser hands out |
//! | `parser` | between two commands: where a line ends, what swallows a refused value, which file reads the line |
//! | `retrieval` | `get`, `gets`, `gat`, `gats`: one key per step |
//! | `storage` | `set`, `add`, `replace`, `append`, `prepend`, `cas`: a line and a value |
//! | `change` | `delete`, `incr`, `decr`, `touch`: a line with a key |
//! | `admin` | commands that name no key |
//! | [`dump`] | items, listed |
//! | [`watch`] | what a client wants to be shown |
//! | [`crate::meta`] | `mg`, `ms`, `md`, `ma`, `me` |
//! | `tokens` | a line in words |
//! | [`login`] | what a client sends that has to authenticate |
//! | [`number`] | decimal numbers as `strtol` reads them |
//! | [`lines`] | every fixed reply line |
//! | [`emit`] | replies that carry data |
//! | `outcome` | outcomes in the words of the classic text protocol |
//!
//! What a malformed command is answered with is memcached 1.6's behaviour, found by sending each to memcached 1.6.18; the
//! table in `tests/text_conformance/` is the record. Two things differ on purpose. A line that is too long is judged by its length
//! alone, not by how much of it happened to arrive together; and of a multi-get with a bad key, no key at all is
//! executed, where memcached runs those before the bad one and then throws their values away.

mod admin;
mod change;
pub mod dump;
pub mod emit;
pub mod lines;
pub mod login;
pub mod number;
mod outcome;
pub(crate) mod parser;
mod retrieval;
pub(crate) mod step;
mod storage;
pub(crate) mod tokens;
pub mod watch;

pub use outcome::Reply;
pub(crate) use outcome::no_memory;
pub use parser::{Limits, Parser};
pub use step::{Admin, After, Detail, Dump, Shutdown, Step};

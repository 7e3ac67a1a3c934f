//! Memcached's classic text protocol: parses requests and writes replies.
//!
//! | file | idea |
//! | --- | --- |
//! | `step` | the parser's output |
//! | `parser` | the state between two commands: finds the end of a line, swallows refused values |
//! | `line` | a complete line, and the limits of values |
//! | `plain` | the most frequent requests, inlined into the caller |
//! | `retrieval` | `get`, `gets`, `gat`, `gats`: one key per step |
//! | `open_line` | the same, where the line is too long to be parsed as a whole |
//! | `storage` | `set`, `add`, `replace`, `append`, `prepend`, `cas`: a line and a value |
//! | `value` | the value after a line, in the input or taken out of it |
//! | `change` | `delete`, `incr`, `decr`, `touch`: a line with a key |
//! | `admin` | commands without a key |
//! | `config`, `cluster` | the servers of a cluster, for clients that look for them |
//! | `reach` | which of them administer the server, and what they reach |
//! | [`dump`] | listings of items |
//! | [`watch`] | the events that a client watches |
//! | [`crate::meta`] | `mg`, `ms`, `md`, `ma`, `me` |
//! | `tokens` | splits a line into words |
//! | `small_bytes` | finds where a word ends, sixteen bytes at a time |
//! | [`login`] | authentication |
//! | [`number`] | decimal numbers as `strtol` parses them |
//! | [`lines`] | every fixed reply line |
//! | [`emit`] | replies that carry data |
//! | `outcome` | writes outcomes as replies of the text protocol |
//! | `reply` | what a request says about its reply |
//! | `speak` | lets connections speak the protocol |
//!
//! Replies to malformed commands are those of memcached 1.6. They were found by sending each
//! command to memcached 1.6.18; the table in `tests/text_conformance/` records them. There are two
//! deliberate differences. A line that is too long is judged by its length alone, not by how much
//! of it arrived at once. If a multi-get has a bad key, none of its keys is executed; memcached
//! executes those before the bad key and discards their values.

mod admin;
mod change;
mod cluster;
mod config;
pub mod dump;
pub mod emit;
pub(crate) mod line;
pub mod lines;
pub mod login;
pub mod number;
mod open_line;
mod outcome;
pub(crate) mod parser;
mod plain;
mod reach;
mod reply;
mod retrieval;
mod small_bytes;
mod speak;
pub(crate) mod step;
mod storage;
pub(crate) mod tokens;
pub(crate) mod value;
pub mod watch;

pub use cluster::Cluster;
pub use line::Limits;
pub(crate) use outcome::no_memory;
pub use parser::Parser;
pub use reply::Reply;
pub use step::{Admin, After, Detail, Dump, Shutdown, Step};

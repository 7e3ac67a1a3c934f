//! RESP, the protocol of Redis, in versions 2 and 3: bytes to requests, and replies to bytes.
//!
//! | file | idea |
//! | --- | --- |
//! | `frame` | where the arguments of a command are: arrays of bulk strings, and inline commands |
//! | `state` | where the parser stands |
//! | `parser` | from one command to the next, and over those that were refused |
//! | `array` | a command that is an array: what is complete, and what is refused |
//! | `names` | the names of all commands |
//! | `keys` | commands with several keys, one after the other |
//! | `pieces` | the same, while the command arrives |
//! | `multi` | transactions |
//! | `locked` | clients that have yet to authenticate |
//! | `call` | a complete command, and the steps that it may come to |
//! | `announce` | commands that store one large value |
//! | `command` | what each command makes of its arguments |
//! | `set` | `SET`, its options and its relatives |
//! | `scale` | numbers that say how long an item stays |
//! | `string` | other commands on strings |
//! | `caching` | client-side caching, of which clients are told to keep nothing |
//! | `scripts` | the Lua scripts that are known |
//! | `scan` | `SCAN` and `KEYS` |
//! | `moves` | `COPY`, `RENAME` and `RENAMENX` |
//! | `session` | commands that the parser answers by itself, and those of the connection |
//! | `form` | what a request says about its reply, and outcomes in the words of RESP |
//! | `words` | answers to commands without a key |
//! | `lines` | every fixed reply |
//!
//! Replies are those of Redis 7. docs/resp.md lists the commands, and what differs from Redis.

mod announce;
mod array;
mod caching;
mod call;
mod command;
mod form;
mod frame;
mod keys;
pub mod lines;
mod locked;
mod moves;
mod multi;
mod names;
mod parser;
mod pieces;
mod scale;
mod scan;
mod scripts;
mod session;
mod set;
mod state;
mod string;
mod words;

pub use form::{Form, Image, Shows, Version};
pub use names::NAMES;
pub use state::Parser;
pub use words::{REDIS_VERSION, Words};

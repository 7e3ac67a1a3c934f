//! Clients of the server behind the circuit. All of them check every byte that they are told.
//!
//! | file | idea |
//! | --- | --- |
//! | `raw` | raw sockets: one key that changes, and its versions |
//! | `hammer` | some change keys while others read them: no value is outdated |
//! | `load` | the load generator |
//! | `memcaslap` | libmemcached's load generator |

mod hammer;
mod load;
mod memcaslap;
mod raw;

pub use hammer::{Hammered, hammer};
pub use load::load;
pub use memcaslap::memcaslap;
pub use raw::{Reads, Writer};

//! What serves no item: commands without a key, listings of all items, `watch`, statistics, login
//! and failures.
//!
//! | file | idea |
//! | --- | --- |
//! | `commands` | commands that name no key |
//! | `handler` | what a worker asks of the server around it |
//! | `dump` | listing all items |
//! | `report` | replies that are made piece by piece |
//! | `login` | clients that have yet to authenticate |
//! | `observe`, `watch` | showing clients what happens |
//! | `stats` | what a worker counts |
//! | `switches` | what clients can change while the server runs |
//! | `alarm` | failures that no client is told of |

pub(crate) mod alarm;
pub(crate) mod commands;
pub(crate) mod dump;
pub(crate) mod handler;
mod login;
pub(crate) mod observe;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod switches;
mod watch;

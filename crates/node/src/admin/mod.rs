//! Everything that serves no item: commands without a key, listings of all items, `watch`,
//! statistics, login and failures.
//!
//! | file | idea |
//! | --- | --- |
//! | `allowance` | what they may cost a worker in one turn |
//! | `handler` | the interface between a worker and the server around it |
//! | `cluster` | the list of servers that clients ask for |
//! | `commands` | commands without a key |
//! | `dump` | listings of all items |
//! | `guard` | rights that one client has at a time |
//! | `keys` | keys that fit a pattern |
//! | `random_key` | any key |
//! | `survey` | items and bytes by key prefix |
//! | `transfer` | an item that gets another key |
//! | `walks` | the search for expired items, and the copy of all items |
//! | `snapshot`, `feed` | that copy, on its way to the thread that writes it |
//! | `long_reply` | replies that are produced in parts |
//! | `login` | clients that have yet to authenticate |
//! | `observe` | reports of events to watchers |
//! | `stats` | a worker's counters |
//! | `switch` | another dispatch policy while the server runs |
//! | `switches` | settings that clients can change while the server runs |
//! | `alarm` | failures that are reported to no client |

pub(crate) mod alarm;
pub(crate) mod allowance;
pub(crate) mod cluster;
pub(crate) mod commands;
pub(crate) mod dump;
pub(crate) mod feed;
pub(crate) mod guard;
pub(crate) mod handler;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod long_reply;
pub(crate) mod observe;
pub(crate) mod random_key;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod survey;
pub(crate) mod switch;
pub(crate) mod switches;
pub(crate) mod transfer;
pub(crate) mod walks;

//! What serves no item: commands without a key, listings of all items, `watch`, statistics, login
//! and failures.
//!
//! | file | idea |
//! | --- | --- |
//! | `handler` | what a worker asks of the server around it |
//! | `commands` | commands that name no key |
//! | `dump` | listing all items |
//! | `crawl` | the search for expired items |
//! | `report` | replies that are made piece by piece |
//! | `login` | clients that have yet to authenticate |
//! | `observe` | what is shown to watchers |
//! | `stats` | what a worker counts |
//! | `switches` | what clients can change while the server runs |
//! | `alarm` | failures that no client is told of |

pub(crate) mod alarm;
pub(crate) mod commands;
pub(crate) mod crawl;
pub(crate) mod dump;
pub(crate) mod handler;
pub(crate) mod login;
pub(crate) mod observe;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod switches;

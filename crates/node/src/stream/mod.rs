//! Requests that arrive in streams: connections, how their bytes become batches, and the order of
//! their replies.
//!
//! | file | idea |
//! | --- | --- |
//! | `connection` | what a worker knows about one client |
//! | `serve` | receive, execute, send; what each connection waits for next |
//! | `key` | what a worker calls a connection by |
//! | `ready` | which connection is served next |
//! | `burst` | from bytes to batches to replies, across connections |
//! | `member` | a connection, or a datagram, while it is part of a burst |
//! | `forwarding` | where a request executes, and how it leaves for another worker |
//! | `reorder` | the order of replies while some are with other workers |
//! | `registry`, `balancer` | which sockets are open, and which worker gets the next connection |

pub(crate) mod balancer;
pub(crate) mod burst;
pub(crate) mod connection;
mod forwarding;
pub(crate) mod key;
pub(crate) mod member;
pub(crate) mod ready;
pub(crate) mod registry;
mod reorder;
mod serve;

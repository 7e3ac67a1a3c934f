//! Forwarding: how a request reaches the worker that owns its key, and how the reply comes back.
//!
//! Requests travel in *forwarded batches*, which own the bytes of up to a batch of requests, and
//! bring the replies back to the connections and datagrams that asked. Native requests travel in
//! the same batches as whole datagrams, and the worker that executes them answers them itself.
//! Between each ordered pair of workers runs one bounded single-producer
//! [`ring`] of batches. A worker has a fixed number of batches for each peer, its *credit*, and the
//! ring holds those of both sides, so a push never finds the ring full: two workers that send to
//! one another at once cannot block one another. A worker that is out of credit for a peer leaves
//! requests for it unparsed, and goes on draining its rings. In one turn it takes a bounded number
//! of batches, one from each peer in rotation, so that a busy peer starves neither the others nor
//! the worker's own connections.
//!
//! | file | idea |
//! | --- | --- |
//! | [`ring`] | a bounded ring between one producer and one consumer |
//! | [`doorbell`], `bell` | how a sleeping worker is woken |
//! | `batch` | forwarded requests and their replies, or forwarded native datagrams |
//! | [`mailbox`] | what workers seldom leave for one another: connections, dumps |
//! | `port` | one worker's end of all rings |
//! | `worker_set` | a set of workers |

#[cfg(not(loom))]
pub(crate) mod batch;
#[cfg(not(loom))]
pub(crate) mod bell;
pub mod doorbell;
pub mod mailbox;
#[cfg(not(loom))]
pub(crate) mod port;
pub mod ring;
#[cfg(not(loom))]
pub(crate) mod worker_set;

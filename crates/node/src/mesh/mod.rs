//! The mesh: how a request reaches the worker that owns its key, and how the reply comes back.
//!
//! Requests travel in *parcels*: boxes that own the bytes of up to a batch of requests, and the replies on the way back. Between
//! each ordered pair of workers runs one bounded single-producer [`ring`] of boxes. A worker owns a fixed number of boxes per
//! peer and the ring holds all boxes of both, so a push never finds the ring full: two workers that send to one another at once cannot
//! block one another. A worker without a box for a peer leaves requests for it unparsed, and goes on draining its rings. In one
//! turn it takes a bounded number of boxes, one from each peer in rotation, so that a busy peer starves neither the others nor
//! the worker's own connections.

pub mod doorbell;
#[cfg(not(loom))]
pub(crate) mod parcel;
#[cfg(not(loom))]
pub(crate) mod port;
pub mod ring;

//! The native protocol (`docs/native-protocol.md`): datagrams that go straight to the worker that
//! owns their keys.
//!
//! One datagram's way from the device to the memory and back:
//!
//! 1. `../mod.rs`: datagrams wait at one of the worker's packet devices. One call receives up to 32
//!    segment batches, each up to 64 datagrams of one peer, and `serve.rs` passes them on.
//! 2. [`NativeEndpoint::answer`] (`endpoint.rs`) goes through them; `decode.rs` reads each datagram
//!    where it lies. `admission.rs` finds for each request either a job for the engine or the
//!    answer: misdirected requests, those of an old directory, and mutations that have been
//!    executed before (`completions.rs`).
//! 3. Up to 32 jobs, of however many datagrams, go through [`glimmer_engine::Engine::run`] as one
//!    batch.
//! 4. `outbox.rs` writes each reply over the datagram that asked for it, if it is no longer than
//!    that; a longer one goes beside, with others of about its length, to clients that have shown
//!    that they own their address (`token.rs`), and in fragments if it is longer than a datagram.
//! 5. One call sends all segment batches back, and another one those that go beside.
//!
//! Of a reply that is longer than a datagram the engine writes one window of fragments, not all of
//! it; its digest is remembered (`digests.rs`). What comes in fragments is put together first
//! (`assemblies.rs`). The endpoint knows no device but the sender that it is given, so that tests
//! drive it with faults of their own choosing. Where the server directs requests, `handover.rs`
//! first gives away what other workers own.

mod admission;
mod assemblies;
mod batch;
mod completions;
mod context;
mod decode;
mod digests;
mod endpoint;
mod figures;
mod handover;
mod outbox;
mod rules;
mod serve;
mod token;

pub(crate) use completions::CompletionTables;
pub use endpoint::NativeEndpoint;
pub use figures::NativeFigures;
pub use rules::{NativeConfig, Rules};
pub(crate) use serve::NativeServer;
pub use token::TokenKey;

//! The native protocol (`docs/native-protocol.md`): datagrams that go straight to the worker that
//! owns their keys.
//!
//! The path of a datagram from the device to memory and back:
//!
//! 1. `../mod.rs`: datagrams wait at one of the worker's packet devices. One call receives up to 32
//!    segment batches, each with up to 64 datagrams from one peer, and `serve.rs` passes them on.
//! 2. [`NativeEndpoint::answer`] (`endpoint.rs`) goes through them; `decode.rs` parses each
//!    datagram in place. For each request, `admission.rs` produces either a job for the engine or
//!    the answer: to misdirected requests, requests with an outdated directory, and mutations that
//!    have been executed before (`completions.rs`).
//! 3. Up to 32 jobs, from any number of datagrams, go through [`glimmer_engine::Engine::run`] as
//!    one batch.
//! 4. `endpoint/replies.rs` makes the replies. `outbox.rs` writes each over its request's datagram
//!    if it is no longer than that.
//!    Longer replies are sent separately, together with others of similar length, and only to
//!    clients with a validated address (`token.rs`). Replies longer than a datagram are fragmented.
//! 5. One call sends all segment batches back, and another one sends the separate replies.
//!
//! For a reply that is longer than a datagram, the engine writes only one window of fragments; the
//! digest of the whole reply is cached (`digests.rs`). Fragmented requests are reassembled first
//! (`assemblies.rs`). The endpoint knows no device except the sender that it is given, so tests can
//! drive it with faults.
//!
//! Admission asks the dispatch plan about each request. A datagram that another worker has to
//! execute is handed over whole, in a forwarded batch (`../../forward/batch.rs`), and so is a
//! datagram whose only request turns out to belong elsewhere when it is executed: an optimistic
//! read met too many writers, or a value is too large for this worker. The other worker executes it
//! whatever its size, and answers through the device at which it came in (MICA §5.5 compares this
//! with clients that direct their requests themselves). A request in fragments does not travel
//! after it has been put together.

mod admission;
mod assemblies;
mod batch;
mod completions;
mod context;
mod decode;
mod digests;
mod endpoint;
mod figures;
mod outbox;
mod rules;
mod serve;
pub(crate) mod steering;
mod token;

pub use admission::{Dispatch, HandTo};
pub(crate) use completions::CompletionTables;
pub use endpoint::NativeEndpoint;
pub use figures::NativeFigures;
pub use rules::{NativeConfig, Rules};
pub(crate) use serve::NativeServer;
pub use token::TokenKey;

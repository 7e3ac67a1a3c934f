//! Requests that arrive in datagrams: memcached's own framing, and the native protocol.

pub(crate) mod answer;
pub(crate) mod memcached;
pub mod native;

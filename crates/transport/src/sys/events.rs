//! What epoll reports, in a type that may go to another thread.
#![allow(unsafe_code, reason = "an event may be taken for a pointer")]

use rustix::event::epoll::Event;

/// Descriptors that were ready.
pub struct Events(pub Vec<Event>);

// SAFETY: an event is flags and the number under which its descriptor is watched. That the same
// bits may be taken for a pointer, which keeps the type from being `Send`, is of no use to anybody
// without unsafe code of their own.
unsafe impl Send for Events {}

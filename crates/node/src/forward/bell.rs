//! The bell of a worker's [`Doorbell`](super::doorbell::Doorbell): an eventfd that its poller
//! watches.

use glimmer_transport::Bell;

use super::doorbell::Ring;

/// An eventfd as the doorbell sees it.
pub(crate) struct EventBell(pub Bell);

impl Ring for EventBell {
    fn ring(&self) {
        self.0.ring();
    }
}

//! The bell of a worker's [`Doorbell`](crate::mesh::doorbell::Doorbell): an eventfd that its poller watches.

use glimmer_transport::Bell;

use crate::mesh::doorbell::Ring;

/// An eventfd as the mesh sees it.
pub(crate) struct EventBell(pub Bell);

impl Ring for EventBell {
    fn ring(&self) {
        self.0.ring();
    }
}

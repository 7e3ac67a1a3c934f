//! What comes in to a worker that has no sockets.

use glimmer_proto::Accepts;
use glimmer_transport::packet::PacketDevice;
use glimmer_transport::stream::StreamListener;

/// Where requests come in to one worker of a [`DrivenNode`](crate::DrivenNode). Each source is
/// waited for by a [`Signal`](glimmer_transport::Signal), as those inside the process are.
#[derive(Default)]
pub struct Devices {
    /// Packet devices for memcached's UDP protocol.
    pub memcached: Vec<Box<dyn PacketDevice>>,
    /// The packet device for native clients. Either all workers have one, or none.
    pub native: Option<Box<dyn PacketDevice>>,
    /// Listeners, and which protocols the connections may speak that come in by each.
    pub listeners: Vec<(Box<dyn StreamListener>, Accepts)>,
}

//! What a worker asks of the server around it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_proto::text::Shutdown;

use crate::admin::alarm::Alarm;
use crate::config::Address;
use crate::figures::NodeFigures;
use crate::packet::native::Rules;

/// Answers the commands that name no key and that a worker cannot answer by itself. Called on a
/// worker's thread, when everything before the command on its connection has been answered; other
/// connections wait meanwhile.
pub trait AdminHandler: Send + Sync {
    /// The node is about to serve, at these addresses; those of UDP sockets come second. Called
    /// once, before anything else.
    fn open(&self, addresses: &[Address], udp: &[SocketAddr], figures: NodeFigures) {
        let _ = (addresses, udp, figures);
    }

    /// The node is about to serve native clients, too: these are the workers' ports at each
    /// address, and what the workers go by. Called once, after [`AdminHandler::open`].
    fn open_native(&self, ports: &[(IpAddr, Arc<[u16]>)], rules: &Rules) {
        let _ = (ports, rules);
    }

    /// Appends the next piece of the answer to `stats <argument>`: at most
    /// [`glimmer_base::limits::REPORT_BYTES_HIGH`] bytes and a line. `argument` is without
    /// surrounding spaces, and empty for the general figures.
    ///
    /// `from` is 0 for the first piece. Returns the `from` of the next one, or nothing if this
    /// piece ends with the answer's last line (`END`). Pieces are asked for as the client takes
    /// them, with any time in between.
    fn stats(&self, argument: &[u8], from: u64, now: Moment, out: &mut Vec<u8>) -> Option<u64>;

    /// Whether a client may use the server as this user, with this password.
    fn admits(&self, user: &[u8], password: &[u8]) -> bool;

    /// A client asks for another memory limit, in MiB. Returns whether that is the limit now.
    fn set_memory_limit(&self, mebibytes: u32) -> bool {
        let _ = mebibytes;
        false
    }

    /// Sets how much is logged.
    fn verbosity(&self, level: u32);

    /// Something failed that no client is told of. Must not block: workers call it.
    fn alarm(&self, alarm: Alarm) {
        let _ = alarm;
    }

    /// A client asks the server to stop: begins to, or appends the line that says why not. Returns
    /// whether the connection is to be closed.
    fn shutdown(&self, how: Shutdown, out: &mut Vec<u8>) -> bool;
}

//! The interface between a worker and the server around it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_proto::AdminCommand;
use glimmer_proto::sections::Sections;
use glimmer_proto::text::{Shutdown, lines};

use crate::admin::alarm::Alarm;
use crate::config::Address;
use crate::figures::NodeFigures;
use crate::packet::native::Rules;

/// A part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It ends with the last line (`END`).
    Last,
    /// Another one follows: it is asked for with this `from`.
    More(u64),
    /// Nothing was appended, because another thread has yet to find something out. The part is
    /// asked for again after [`NodeFigures::announce`], or after a short time.
    Later,
}

/// What became of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The user or the password is wrong.
    Wrong,
    /// The client may go on, as the user of this number; 0: as one that may do everything.
    Admitted(u16),
    /// The user has as many connections as it may.
    Full,
}

/// Something that is told to auditors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited<'a> {
    /// A client has tried to authenticate as this user.
    Login {
        /// The name that it gave.
        user: &'a [u8],
        /// Whether it may go on.
        is_admitted: bool,
    },
    /// A client has sent an administrative command.
    Command {
        /// The command.
        command: AdminCommand,
        /// Words of it that say what is to change.
        words: [&'a [u8]; 2],
        /// Whether it is carried out.
        is_permitted: bool,
    },
}

/// Answers commands without a key that a worker cannot answer itself. Called on a worker's thread,
/// after everything before the command on its connection has been answered. Other connections wait
/// meanwhile.
pub trait AdminHandler: Send + Sync {
    /// The node is about to serve at these addresses; `udp` has those of UDP sockets. Called once,
    /// before anything else.
    fn open(&self, addresses: &[Address], udp: &[SocketAddr], figures: NodeFigures) {
        let _ = (addresses, udp, figures);
    }

    /// The node is about to serve native clients at these ports of the workers, per address, by
    /// these rules. Called once, after [`AdminHandler::open`].
    fn open_native(&self, ports: &[(IpAddr, Arc<[u16]>)], rules: &Rules) {
        let _ = (ports, rules);
    }

    /// Appends the next part of the reply to `stats <argument>`: at most
    /// [`glimmer_base::limits::REPORT_BYTES_HIGH`] bytes and a line if it is long. `argument` has
    /// no surrounding spaces and is empty for general statistics, which have one part.
    ///
    /// `from` is 0 for the first part. Parts are requested as the client reads them, at any
    /// intervals. Must neither block nor read files, because a worker calls it.
    fn stats(&self, argument: &[u8], from: u64, now: Moment, out: &mut Vec<u8>) -> Part;

    /// Appends the figures of `INFO`, as Redis shows them. Must neither block nor read files.
    fn info(&self, sections: Sections, now: Moment, out: &mut Vec<u8>) {
        let _ = (sections, now, out);
    }

    /// Appends the next connections of `CLIENT LIST`, one a line, about
    /// [`glimmer_base::limits::REPORT_BYTES_HIGH`] bytes of them. `from` is 0 for the first ones.
    /// Returns where the next ones begin.
    fn clients(&self, from: u64, now: Moment, out: &mut Vec<u8>) -> Option<u64> {
        let _ = (from, now, out);
        None
    }

    /// How many items there are.
    fn items(&self) -> u64 {
        0
    }

    /// Whether a client may use the server as this user, with this password.
    fn admits(&self, user: &[u8], password: &[u8]) -> bool;

    /// A client logs in as this user, with this password. If the user has a number, its connection
    /// has been counted ([`Tenants::enter`](crate::Tenants::enter)).
    fn log_in(&self, user: &[u8], password: &[u8]) -> Login {
        match self.admits(user, password) {
            true => Login::Admitted(0),
            false => Login::Wrong,
        }
    }

    /// A client requests a different memory limit, in MiB. Returns whether this is the limit now.
    fn set_memory_limit(&self, mebibytes: u32) -> bool {
        let _ = mebibytes;
        false
    }

    /// About once a second, if its worker is awake. Whoever is not a worker, and is to wait for no
    /// lock of one, leaves work for this. Must not block, and may take about as long as one
    /// administrative command.
    fn tick(&self, worker: usize, now: Moment) {
        let _ = (worker, now);
    }

    /// Sets the log level.
    fn verbosity(&self, level: u32);

    /// A failure that is reported to no client. Must not block, because workers call it.
    fn alarm(&self, alarm: Alarm) {
        let _ = alarm;
    }

    /// Whether auditors are told anything.
    fn audits(&self) -> bool {
        false
    }

    /// A client at this address did this. Must not block, because workers call it.
    fn audit(&self, client: &str, what: Audited<'_>) {
        let _ = (client, what);
    }

    /// A client has the certificates of TLS read again: appends the line that answers it. The files
    /// are small, and the worker reads them as memcached's does.
    fn refresh_certificates(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(lines::ERROR.as_bytes());
    }

    /// A client has the server begin to write a snapshot: appends the line that answers it.
    fn snapshot(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(lines::ERROR.as_bytes());
    }

    /// A client asks the server to stop. Starts to stop, or appends the line that says why not.
    /// Returns whether to close the connection.
    fn shutdown(&self, how: Shutdown, out: &mut Vec<u8>) -> bool;
}

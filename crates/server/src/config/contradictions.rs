//! Settings that exclude each other.

use super::{AccessMode, BusyPoll, Config, Mode, TableKind};
use crate::accelerate::{Accelerate, Hook, Sources};
use crate::encryption::ListenerTls;
use crate::snapshot::Snapshots;
use glimmer_proto::Accepts;
use std::net::SocketAddr;

impl Config {
    /// Whether clients know how to authenticate before their first byte tells their protocol.
    fn has_known_login(&self) -> bool {
        !matches!(self.protocol, Accepts::Any | Accepts::Binary)
    }

    /// Whether every worker may execute every native request.
    fn executes_anywhere(&self) -> bool {
        self.workers == 1 || self.access == AccessMode::Crcw
    }

    /// Settings that exclude an accelerator at an interface, or that need one.
    fn contradicts_interface(&self) -> Option<&'static str> {
        if self.accelerate.interface().is_none() {
            let is_limited = self.accelerate_from != Sources::OnLink;
            return is_limited.then_some(
                "--accelerate-from is for an interface: give that with --accelerate xdp:IF",
            );
        }
        let is_shared = self.accelerate.interface() == self.packets.interface();
        if let Accelerate::At {
            hook: Hook::Tcx, ..
        } = self.accelerate
            && is_shared
        {
            return Some(
                "--accelerate tcx:IF does not see what --packet-transport xdp takes at the same \
                 interface: give --accelerate xdp:IF",
            );
        }
        let mut ports = self.udp.iter().map(SocketAddr::port);
        let port = ports.next();
        if port == Some(0) {
            Some("--accelerate at an interface needs a port of its own: give its number with -U")
        } else if ports.any(|other| Some(other) != port) {
            Some("--accelerate at an interface answers at one UDP port: give only one")
        } else if self.protocol != Accepts::Any {
            Some("--accelerate at an interface answers text and binary requests: leave -B out")
        } else {
            None
        }
    }

    /// Settings that exclude `--users`, for the reasons for which they exclude `-Y`.
    fn contradicts_users(&self) -> Option<&'static str> {
        if self.users.is_none() {
            None
        } else if !self.sasl && !self.has_known_login() {
            Some("--users needs to know the protocol: leave -B out, or give -B ascii or -B resp")
        } else if !self.udp.is_empty() {
            Some("--users excludes UDP, whose senders may be forged; leave -U out or give -U 0")
        } else if !self.native.is_empty() {
            Some(
                "--users excludes native clients, who cannot authenticate; leave --native-port out",
            )
        } else {
            None
        }
    }

    /// Settings that exclude each other, as in memcached.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let has_udp = !self.udp.is_empty();
        let is_plain = |listener: &ListenerTls| *listener == ListenerTls::Plain;
        let has_plain_only = self.tcp_encryption.iter().all(is_plain);
        let is_encrypted = self.tls.is_enabled && !has_plain_only && self.unix.is_none();
        if self.tls.is_enabled && self.tls.chain.is_none() {
            Some("-Z needs a certificate: give its file with -o ssl_chain_cert=FILE")
        } else if is_encrypted && !self.native.is_empty() {
            Some(
                "-Z encrypts TCP only: leave --native-port out, or give every address as \
                 notls:ADDRESS (-l)",
            )
        } else if self.memory_file.is_none() && self.memory_file_discard {
            Some("--memory-file-discard says what becomes of the file of -e; give that as well")
        } else if let (Some(file), Some(snapshot)) = (&self.memory_file, &self.snapshot)
            && Snapshots::writes_to(snapshot, file)
        {
            Some(
                "-e and --snapshot need a file each, and --snapshot FILE takes FILE.unfinished as \
                 well: give -e another name",
            )
        } else if self.sasl && self.protocol != Accepts::Binary {
            Some("-S needs the binary protocol; leave -B out or give -B binary")
        } else if self.sasl && has_udp {
            Some("-S excludes UDP; leave -U out or give -U 0")
        } else if self.auth_file.is_some() && self.users.is_some() {
            Some("-Y and --users both name users: give one of them")
        } else if self.sasl && self.auth_file.is_none() && self.users.is_none() {
            Some("-S needs a file with users and passwords: give one with -Y or --users")
        } else if !self.sasl && self.auth_file.is_some() && !self.has_known_login() {
            Some("-Y needs the text protocol; leave -B out or give -B ascii")
        } else if self.auth_file.is_some() && has_udp {
            Some("-Y excludes UDP; leave -U out or give -U 0")
        } else if self.auth_file.is_some() && !self.native.is_empty() {
            Some("-Y excludes native clients, who cannot authenticate; leave --native-port out")
        } else if let Some(reason) = self.contradicts_users() {
            Some(reason)
        } else if self.protocol == Accepts::Resp && has_udp {
            Some("-B resp excludes UDP, over which RESP is not spoken; leave -U out or give -U 0")
        } else if !matches!(self.accelerate, Accelerate::Off) && !has_udp {
            Some("--accelerate answers memcached's UDP protocol: give its port with -U")
        } else if let Accelerate::Made(maker) = &self.accelerate
            && let Err(reason) = maker.check(self.protocol)
        {
            Some(reason)
        } else if let Some(reason) = self.contradicts_interface() {
            Some(reason)
        } else if self.packets.interface().is_some() && !has_udp && self.native.is_empty() {
            Some("--packet-transport carries datagrams: give a port with -U or --native-port")
        } else if matches!(self.busy_poll, BusyPoll::For(_)) && !has_udp && self.native.is_empty() {
            Some(
                "--busy-poll with a time is for datagrams: give a port with -U or --native-port, \
                 or --busy-poll always",
            )
        } else if self.native_single_port && self.native.is_empty() {
            Some("--native-single-port needs a port: give one with --native-port")
        } else if self.native_single_port && !self.executes_anywhere() {
            Some(
                "--native-single-port needs --access crcw, because the parts of a large value come \
                 to any worker",
            )
        } else if self.mode == Mode::Store && self.table == TableKind::Memc3 {
            Some("--table memc3 evicts when it is full; leave -M and --mode store out")
        } else {
            None
        }
    }
}

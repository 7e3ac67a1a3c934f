//! Sockets that a service manager has opened and passes on (`LISTEN_FDS`, `sd_listen_fds(3)`).
//!
//! They take the place of the addresses that the settings name: those for connections of `-p`, `-l`
//! and `-s`, those of UDP of `-U`, and those whose name is `http` of `--http`. A name of `notls`,
//! `btls` or `mtls` says how connections are encrypted, as the same prefix does in `-l`; every
//! other name is for people.

use crate::config::Config;
use crate::encryption::ListenerTls;
use glimmer_base::limits::INHERITED_SOCKETS_MAX;
use glimmer_node::{Inherited, NodeConfig};
use glimmer_transport::tcp::Liveness;
use glimmer_transport::udp::UdpDevice;
use glimmer_transport::{Endpoint, Listener, SocketKind};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// The name of a socket for what `--http` serves.
const HTTP: &str = "http";

/// Why a socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// The variables contradict what was passed on, or the system refused a request.
    #[error("LISTEN_FDS: the sockets of the service manager cannot be taken over: {0}")]
    Taken(#[from] io::Error),
    /// There are too many.
    #[error(
        "LISTEN_FDS: there are {0} sockets, and {INHERITED_SOCKETS_MAX} can be taken over: put \
         fewer into the socket units"
    )]
    Many(usize),
    /// Nothing can be served at one of them.
    #[error("LISTEN_FDS: descriptor {number} ({name}) {reason}")]
    Kind {
        /// Its number.
        number: i32,
        /// Its name (`LISTEN_FDNAMES`).
        name: String,
        /// A sentence without its subject.
        reason: String,
    },
}

/// The sockets that were passed on to this process.
#[derive(Default)]
pub struct Sockets {
    /// TCP, with how connections are encrypted.
    tcp: Vec<(OwnedFd, ListenerTls)>,
    unix: Vec<OwnedFd>,
    udp: Vec<OwnedFd>,
    http: Vec<TcpListener>,
}

impl Sockets {
    /// Takes over what was passed on to this process. Must be called once, before the process has
    /// opened a descriptor of its own. `has_tls`: the server encrypts connections.
    pub fn take(has_tls: bool) -> Result<Sockets, InheritedError> {
        let mut sockets = Sockets::default();
        // Each of them is open, and is not left to programs that this one starts.
        let numbers = sd_notify::listen_fds()?;
        if numbers.len() == 0 {
            // The names, if there are any, are for another process.
            return Ok(sockets);
        }
        let passed = sd_notify::listen_fds_with_names()?;
        if passed.len() > INHERITED_SOCKETS_MAX {
            return Err(InheritedError::Many(passed.len()));
        }
        for (number, name) in passed {
            // SAFETY: by the protocol, this open descriptor belongs to this process, which has
            // taken it over nowhere else.
            let socket = unsafe { OwnedFd::from_raw_fd(number) };
            sockets.sort_in(socket, &name, has_tls).map_err(|reason| {
                let name = name.clone();
                InheritedError::Kind {
                    number,
                    name,
                    reason,
                }
            })?;
        }
        Ok(sockets)
    }

    fn sort_in(&mut self, socket: OwnedFd, name: &str, has_tls: bool) -> Result<(), String> {
        match SocketKind::of(socket.as_fd())? {
            SocketKind::Tcp if name == HTTP => self.http.push(socket.into()),
            _ if name == HTTP => return Err("is not a socket of TCP, as http is served at".into()),
            SocketKind::Tcp => {
                let named = ListenerTls::NAMES.iter().find(|(known, _)| *known == name);
                let tls = named.map_or(ListenerTls::AsSet, |(_, tls)| *tls);
                if !has_tls && !matches!(tls, ListenerTls::AsSet | ListenerTls::Plain) {
                    return Err("is for a server with TLS (-Z)".into());
                }
                self.tcp.push((socket, tls));
            }
            SocketKind::Unix => self.unix.push(socket),
            SocketKind::Udp => self.udp.push(socket),
        }
        Ok(())
    }

    fn has_listeners(&self) -> bool {
        !(self.tcp.is_empty() && self.unix.is_empty())
    }

    /// Enters the addresses of the sockets into the settings, in place of those that were given.
    pub fn replace_in(&self, config: &mut Config) {
        if self.has_listeners() {
            config.tcp = self.tcp.iter().filter_map(|(it, _)| address(it)).collect();
            config.tcp_protocols.clear();
            config.tcp_names.clear();
            let tcp = self.tcp.iter().map(|(_, tls)| *tls);
            // A Unix socket is not encrypted, as in memcached.
            let unix = self.unix.iter().map(|_| ListenerTls::Plain);
            config.tcp_encryption = tcp.chain(unix).collect();
            config.unix = None;
            let addresses = config.tcp.iter().map(SocketAddr::to_string);
            let addresses: Vec<String> = addresses.collect();
            config.interfaces = (!addresses.is_empty()).then(|| addresses.join(","));
        }
        if !self.udp.is_empty() {
            config.udp = self.udp.iter().filter_map(address).collect();
            config.udp_names.clear();
        }
        if !self.http.is_empty() {
            let addresses = self.http.iter().map(TcpListener::local_addr);
            config.http = addresses.flatten().collect();
        }
    }

    /// The sockets for `--http`, if there are any.
    pub fn take_http(&mut self) -> Option<Vec<TcpListener>> {
        (!self.http.is_empty()).then(|| std::mem::take(&mut self.http))
    }

    /// What workers serve, instead of the addresses that were [entered](Sockets::replace_in).
    pub fn in_place_of(
        self,
        node: &mut NodeConfig,
        liveness: Liveness,
    ) -> Result<Inherited, InheritedError> {
        if self.has_listeners() {
            node.listen.clear();
        }
        if !self.udp.is_empty() {
            node.udp.clear();
        }
        let tcp = self.tcp.into_iter().map(|(socket, _)| socket);
        let listeners = tcp.chain(self.unix);
        let listeners = listeners.map(|socket| Listener::inherited(socket, liveness));
        Ok(Inherited {
            listeners: listeners.collect::<io::Result<_>>()?,
            datagrams: (self.udp.into_iter().map(UdpDevice::inherited))
                .collect::<io::Result<_>>()?,
        })
    }
}

/// Where a socket is bound.
fn address(socket: &OwnedFd) -> Option<SocketAddr> {
    match Endpoint::local(socket)? {
        Endpoint::Ip(address) => Some(address),
        Endpoint::Unix(_) => None,
    }
}

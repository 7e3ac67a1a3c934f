//! Ports that two kinds of listeners of one server want.

use super::{Config, ConfigError};
use std::net::{IpAddr, SocketAddr};

impl Config {
    /// Whether each port has one use. The sockets of a service manager have to have taken the place
    /// of addresses before.
    ///
    /// # Errors
    ///
    /// [`ConfigError::SamePort`].
    pub fn check_ports(&self) -> Result<(), ConfigError> {
        let uses = [
            ("--http and -p", &self.http, &self.tcp),
            ("--native-port and -U", &self.native, &self.udp),
        ];
        let both = uses
            .iter()
            .find_map(|(flags, some, others)| Some((*flags, common_port(some, others)?)));
        match both {
            Some((flags, port)) => Err(ConfigError::SamePort { flags, port }),
            None => Ok(()),
        }
    }
}

/// A port that two listeners of this server want at addresses in common. Any free port is another
/// one for each.
fn common_port(some: &[SocketAddr], others: &[SocketAddr]) -> Option<u16> {
    let covers = |all: IpAddr, one: IpAddr| {
        all == one || (all.is_unspecified() && all.is_ipv4() == one.is_ipv4())
    };
    let meet = |a: &SocketAddr, b: &SocketAddr| {
        a.port() == b.port() && (covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
    };
    let mut named = some.iter().filter(|address| address.port() != 0);
    let common = named.find(|address| others.iter().any(|other| meet(address, other)));
    common.map(SocketAddr::port)
}

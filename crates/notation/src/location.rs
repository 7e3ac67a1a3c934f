//! The address of a server, as every command takes it.

use std::{fmt, path::PathBuf, str::FromStr};

/// The default port: memcached's.
pub const PORT_DEFAULT: u16 = 11211;

/// The address of a server. A host name is resolved only when it is needed, and again each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// TCP, with a host name or address and a port.
    Tcp(String, u16),
    /// UDP with memcached's frames, as plain datagrams.
    Udp(String, u16),
    /// UDP with memcached's frames. Datagrams of equal length pass through the kernel as one
    /// segment batch (`UDP_SEGMENT`).
    UdpTrains(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Default for Location {
    /// memcached's port on this machine.
    fn default() -> Location {
        Location::Tcp("127.0.0.1".to_owned(), PORT_DEFAULT)
    }
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Location, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("unix: is followed by a path".to_owned()),
                path => Ok(Location::Unix(path.into())),
            };
        }
        type Make = fn(String, u16) -> Location;
        const SCHEMES: [(&str, Make); 3] = [
            ("udp:", Location::Udp),
            ("udp-trains:", Location::UdpTrains),
            ("tcp:", Location::Tcp),
        ];
        let with_scheme = SCHEMES
            .iter()
            .find_map(|(scheme, make)| Some((*make, text.strip_prefix(scheme)?)));
        let (make, rest) = with_scheme.unwrap_or((Location::Tcp, text));
        // An IPv6 address contains colons itself: with a port it needs brackets.
        let is_bare_v6 = rest.matches(':').count() > 1 && !rest.contains('[');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !is_bare_v6 && !port.ends_with(']') => {
                let port = port.parse().ok().filter(|&port| port > 0);
                let port = port.ok_or_else(|| {
                    format!("{text} does not end in a port, which is from 1 to 65535")
                })?;
                (host, port)
            }
            _ => (rest, PORT_DEFAULT),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
            .to_owned();
        match host.is_empty() {
            true => Err("an address is HOST, HOST:PORT or unix:PATH".to_owned()),
            false => Ok(make(host, port)),
        }
    }
}

impl Location {
    /// The name or address of the machine, unless the server is at a Unix socket.
    pub fn host(&self) -> Option<&str> {
        match self {
            Location::Tcp(host, _) | Location::Udp(host, _) | Location::UdpTrains(host, _) => {
                Some(host)
            }
            Location::Unix(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Location::Tcp(host, port) => ("", host, port),
            Location::Udp(host, port) => ("udp:", host, port),
            Location::UdpTrains(host, port) => ("udp-trains:", host, port),
            Location::Unix(path) => return write!(out, "unix:{}", path.display()),
        };
        match host.contains(':') {
            true => write!(out, "{scheme}[{host}]:{port}"),
            false => write!(out, "{scheme}{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_memcacheds_unless_it_is_given() {
        for (text, whole) in [
            ("cache", "cache:11211"),
            ("cache:11311", "cache:11311"),
            ("10.0.0.1", "10.0.0.1:11211"),
            ("::1", "[::1]:11211"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:11311", "[::1]:11311"),
            ("tcp:cache:1", "cache:1"),
            ("udp:cache", "udp:cache:11211"),
            ("udp:[::1]:5", "udp:[::1]:5"),
            ("udp-trains:cache:5", "udp-trains:cache:5"),
            ("unix:/run/c.sock", "unix:/run/c.sock"),
        ] {
            let location: Location = text.parse().expect(text);
            assert_eq!(location.to_string(), whole);
            assert_eq!(whole.parse(), Ok(location), "{whole}");
        }
        assert_eq!(Location::default().to_string(), "127.0.0.1:11211");
        for wrong in [
            "",
            ":1",
            "cache:port",
            "cache:0",
            "cache:70000",
            "unix:",
            "udp:",
        ] {
            assert!(wrong.parse::<Location>().is_err(), "{wrong}");
        }
    }
}

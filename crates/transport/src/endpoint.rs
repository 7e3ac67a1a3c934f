//! Names of sockets, in memcached's format.

use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use glimmer_base::shown;
use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

/// One end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and a port.
    Ip(SocketAddr),
    /// A Unix socket, with its path if it has one.
    Unix(Option<PathBuf>),
}

impl Endpoint {
    /// The local end of a socket; `None` if it no longer has one.
    pub fn local(socket: impl AsFd) -> Option<Endpoint> {
        Endpoint::of(getsockname(socket).ok()?)
    }

    /// The remote end of a socket; `None` if it is no longer connected.
    pub fn peer(socket: impl AsFd) -> Option<Endpoint> {
        Endpoint::of(getpeername(socket).ok()??)
    }

    fn of(address: SocketAddrAny) -> Option<Endpoint> {
        if let Ok(address) = SocketAddr::try_from(address.clone()) {
            return Some(Endpoint::Ip(address));
        }
        let address = SocketAddrUnix::try_from(address).ok()?;
        let path = address.path_bytes();
        let path = path.map(|path| PathBuf::from(OsStr::from_bytes(path)));
        Some(Endpoint::Unix(path))
    }

    /// The address alone: `127.0.0.1`, or `unix`.
    pub fn host(&self) -> String {
        match self {
            Endpoint::Ip(address) => address.ip().to_string(),
            Endpoint::Unix(_) => "unix".into(),
        }
    }

    /// The port; 0 if there is none.
    pub fn port(&self) -> u16 {
        match self {
            Endpoint::Ip(address) => address.port(),
            Endpoint::Unix(_) => 0,
        }
    }
}

/// The format of `stats conns` without the transport: `127.0.0.1:11211`, `[::1]:11211`,
/// `unix:/run/memcached.sock`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Ip(address) => write!(f, "{address}"),
            Endpoint::Unix(None) => f.write_str("unix:"),
            Endpoint::Unix(Some(path)) => {
                // A client may give its end any name.
                write!(f, "unix:{}", shown::visible(path.as_os_str().as_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    #[test]
    fn ends_have_names() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = Endpoint::local(&listener).unwrap();
        assert_eq!(name.to_string(), listener.local_addr().unwrap().to_string());
        assert_eq!(name.host(), "127.0.0.1");
        assert_eq!(Endpoint::peer(&listener), None);
        let (one, _other) = UnixStream::pair().unwrap();
        let name = Endpoint::peer(&one).unwrap();
        assert_eq!((name.host().as_str(), name.port()), ("unix", 0));
        assert_eq!(name.to_string(), "unix:");
        let forged = Endpoint::Unix(Some("/tmp/x\r\nSTAT 9:addr y".into()));
        assert_eq!(forged.to_string(), "unix:/tmp/x%0D%0ASTAT%209:addr%20y");
    }
}

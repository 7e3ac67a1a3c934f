//! Where a server is. Its name is looked up again while nothing answers at its address: in a fleet,
//! a server that is started again may have another one.

use crate::error::{ConnectError, none_known};
use crate::placement::Member;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

/// The address of a server, and its name if the address may change.
#[derive(Clone, Debug)]
pub struct Location {
    pub address: SocketAddr,
    name: Option<Name>,
}

/// A host and a port.
#[derive(Clone, Debug)]
struct Name(String, u16);

impl Location {
    /// A server that stays where it is.
    pub fn fixed(address: SocketAddr) -> Location {
        Location {
            address,
            name: None,
        }
    }

    /// The member at this address, the first one of its name.
    pub fn of(member: &Member, address: SocketAddr) -> Location {
        let is_name = member.host.parse::<IpAddr>().is_err();
        Location {
            address,
            name: is_name.then(|| Name(member.host.clone(), member.native_port)),
        }
    }

    /// The same server at another address.
    pub fn at(&self, address: SocketAddr) -> Location {
        Location {
            address,
            name: self.name.clone(),
        }
    }

    /// Looks up a member's name.
    pub fn find(member: &Member) -> Result<Location, ConnectError> {
        let address = address_of((member.host.as_str(), member.native_port))?;
        Ok(Location::of(member, address))
    }
}

/// The first address of a name.
pub fn address_of(server: impl ToSocketAddrs + Debug) -> Result<SocketAddr, ConnectError> {
    let resolved = server.to_socket_addrs();
    let first = resolved.and_then(|mut addresses| addresses.next().ok_or_else(none_known));
    first.map_err(|reason| ConnectError::no_address(server, reason))
}

/// An answer counts for this long after another search might have begun, in microseconds.
const FRESH_US: u64 = 60_000_000;

/// A search for the present address of a name. It has a thread of its own, because the system's
/// resolver blocks.
#[derive(Debug, Default)]
pub struct Search {
    found: Option<Receiver<io::Result<Vec<SocketAddr>>>>,
    /// When the next one may begin.
    due_us: u64,
}

impl Search {
    /// Call this for a server that does not answer, before each request. A new search begins if
    /// none is under way, at most one in `interval_us`. Returns the server's new address once a
    /// search has found that the name has lost the present one.
    pub fn advance(
        &mut self,
        location: &Location,
        now_us: u64,
        interval_us: u64,
    ) -> Option<SocketAddr> {
        let name = location.name.as_ref()?;
        if let Some(found) = &self.found {
            if now_us >= self.due_us.saturating_add(FRESH_US) {
                // The server was heard in between, and lost again.
                self.found = None;
                return None;
            }
            let found = match found.try_recv() {
                Err(TryRecvError::Empty) => return None,
                found => found.ok().and_then(Result::ok).unwrap_or_default(),
            };
            self.found = None;
            return moved(location.address, &found);
        }
        if now_us >= self.due_us {
            self.due_us = now_us.saturating_add(interval_us);
            self.begin(name.clone());
        }
        None
    }

    /// Without memory for a thread, the next search may succeed.
    fn begin(&mut self, Name(host, port): Name) {
        let (sender, found) = mpsc::sync_channel(1);
        let look_up = move || {
            let addresses = (host.as_str(), port).to_socket_addrs();
            // The client may have gone.
            let _ = sender.send(addresses.map(Iterator::collect));
        };
        let thread = thread::Builder::new().name("glimmer-resolver".to_owned());
        self.found = thread.spawn(look_up).ok().map(|_| found);
    }
}

/// The address to go to, unless the present one is still among those of the name.
fn moved(present: SocketAddr, found: &[SocketAddr]) -> Option<SocketAddr> {
    match found.contains(&present) {
        true => None,
        false => found.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_moves_when_its_name_has_lost_the_address() {
        let [here, there] = ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().unwrap());
        assert_eq!(moved(here, &[there, here]), None);
        assert_eq!(moved(here, &[there]), Some(there));
        assert_eq!(moved(here, &[]), None, "a failed search moves nothing");
    }

    #[test]
    fn an_address_is_no_name() {
        let member = |host: &str| Member {
            host: host.to_owned(),
            port: 11211,
            native_port: 1,
            weight: 1,
        };
        let address = "127.0.0.1:1".parse().unwrap();
        for (host, is_name) in [("127.0.0.1", false), ("::1", false), ("localhost", true)] {
            let location = Location::of(&member(host), address);
            assert_eq!(location.name.is_some(), is_name, "{host}");
        }
    }
}

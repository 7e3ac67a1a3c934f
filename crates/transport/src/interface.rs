//! What is known of a network interface of this machine.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockaddrStorage;

use crate::sys::ethtool;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its hardware address; zero if it has none, as the loopback interface.
    pub mac: [u8; 6],
    /// Its addresses, each with the length of the prefix that is on its link.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether the tags of virtual networks are removed from frames before anybody sees them.
    pub strips_vlan_tags: bool,
}

impl Interface {
    /// The interface with this name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn named(name: &str) -> io::Result<Option<Interface>> {
        let Ok(index) = if_nametoindex(name) else {
            return Ok(None);
        };
        let mut interface = Interface {
            name: name.to_owned(),
            index,
            mac: [0; 6],
            addresses: Vec::new(),
            strips_vlan_tags: ethtool::strips_vlan_tags(name)?,
        };
        let found = getifaddrs()?.filter(|found| found.interface_name == name);
        for (address, netmask) in found.map(|found| (found.address, found.netmask)) {
            let Some(address) = address else { continue };
            if let Some(link) = address.as_link_addr() {
                interface.mac = link.addr().unwrap_or_default();
            } else if let Some(ip) = ip_of(&address) {
                let prefix = netmask.as_ref().and_then(ip_of).map(prefix_of);
                let whole = if ip.is_ipv4() { 32 } else { 128 };
                interface.addresses.push((ip, prefix.unwrap_or(whole)));
            }
        }
        Ok(Some(interface))
    }
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

/// The number of leading ones of a netmask.
fn prefix_of(netmask: IpAddr) -> u8 {
    let ones = match netmask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    ones as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let lo = Interface::named("lo")
            .unwrap()
            .expect("every machine has it");
        assert_eq!((lo.mac, lo.strips_vlan_tags), ([0; 6], false));
        assert!(lo.index > 0);
        assert!(lo.addresses.contains(&([127, 0, 0, 1].into(), 8)), "{lo:?}");
    }

    #[test]
    fn what_does_not_exist_is_not_found() {
        assert_eq!(Interface::named("none-such").unwrap(), None);
        let long = "a name that is longer than any interface may have";
        assert_eq!(Interface::named(long).unwrap(), None);
    }

    #[test]
    fn prefixes_count_leading_ones() {
        for (mask, ones) in [("255.255.240.0", 20), ("0.0.0.0", 0), ("ffff:ffff::", 32)] {
            assert_eq!(prefix_of(mask.parse().unwrap()), ones, "{mask}");
        }
    }
}

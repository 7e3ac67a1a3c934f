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
    /// The addresses of all interfaces, without the link-local ones of others: on this link, other
    /// hosts may have those.
    pub of_host: Vec<IpAddr>,
    /// The name of its driver; empty if it has none, as the loopback interface.
    pub driver: String,
    /// What its driver has switched on that removes the tags of virtual networks from frames before
    /// anybody sees them, by the names that the program ethtool has for it.
    pub strips_tags: Vec<&'static str>,
}

/// Features that remove tags, with the names by which ethtool changes them.
const STRIPPING: [(&str, &str); 2] = [
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse"),
];
/// The driver of virtual pairs, within a machine, between whose ends nothing computes checksums.
pub const VETH: &str = "veth";
/// Further drivers that pass on what other interfaces have received, and from which tags may have
/// been removed before.
const STACKED: [&str; 5] = ["bonding", "bridge", "ipvlan", "macvlan", "team"];

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
            of_host: Vec::new(),
            driver: ethtool::driver(name)?,
            strips_tags: Vec::new(),
        };
        let are_on = ethtool::features(name)?;
        // Drivers that may hide tags say that the second one is on, but it changes nothing there.
        let count = if interface.may_hide_tags() { 1 } else { 2 };
        let stripping = STRIPPING.into_iter().take(count);
        let stripping = stripping.filter(|(feature, _)| are_on.iter().any(|on| on == feature));
        interface.strips_tags = stripping.map(|(_, name)| name).collect();
        for found in getifaddrs()? {
            // An address with a label is listed under that: the name, a colon and more.
            let (its_name, _) =
                (found.interface_name.split_once(':')).unwrap_or((&found.interface_name, ""));
            let is_its_own = its_name == name;
            let Some(address) = found.address else {
                continue;
            };
            if let Some(ip) = ip_of(&address) {
                let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
                if is_its_own || !is_link_local {
                    interface.of_host.push(ip);
                }
                if is_its_own {
                    let prefix = found.netmask.as_ref().and_then(ip_of).map(prefix_of);
                    let whole = if ip.is_ipv4() { 32 } else { 128 };
                    interface.addresses.push((ip, prefix.unwrap_or(whole)));
                }
            } else if is_its_own && let Some(link) = address.as_link_addr() {
                interface.mac = link.addr().unwrap_or_default();
            }
        }
        Ok(Some(interface))
    }
}

impl Interface {
    /// The command after which frames keep the tags of virtual networks, if they do not.
    pub fn tags_command(&self) -> Option<String> {
        let off = self.strips_tags.iter().map(|name| format!(" {name} off"));
        let off: String = off.collect();
        (!off.is_empty()).then(|| format!("ethtool -K {}{off}", self.name))
    }

    /// Whether tags may have been taken out of frames before the interface gets them, whatever its
    /// driver is told.
    fn may_hide_tags(&self) -> bool {
        self.driver == VETH || STACKED.contains(&&*self.driver)
    }

    /// What somebody should know who reads frames at the interface, in front of the kernel's stack.
    pub fn tags_warning(&self) -> Option<String> {
        let advice = match &*self.driver {
            VETH => {
                "run `ethtool -K PEER txvlan off tx-vlan-stag-hw-insert off` at the other end, PEER"
            }
            _ => "keep such frames away from the interface",
        };
        self.may_hide_tags().then(|| {
            format!(
                "frames of virtual networks (VLAN) may arrive at {} without their tags, as its \
                 driver is {}, and would be taken for frames of this network: {advice}",
                self.name, self.driver
            )
        })
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
        assert_eq!((lo.mac, &*lo.driver), ([0; 6], ""));
        assert_eq!((lo.tags_command(), lo.tags_warning()), (None, None));
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

//! What the operator can say about the hot-key accelerator.

use super::made::MakeBody;
use glimmer_hotset::Policy;
use glimmer_hotset::policies::{Make, POLICIES};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of an interface in bytes (`IFNAMSIZ` without the zero at the end).
const NAME_BYTES_MAX: usize = 15;
/// The name of a circuit that another process simulates, which this program cannot fill.
const CIRCUIT: &str = "rtl";

/// What answers reads of hot keys before the server sees them (`--accelerate`).
#[derive(Clone, Debug)]
pub enum Accelerate {
    /// Nothing.
    Off,
    /// Slots in the server's own memory, in which the worker looks that has received the datagram.
    Model,
    /// A packet program in the kernel.
    At {
        /// Where the program sees packets.
        hook: Hook,
        /// The name of the interface.
        interface: String,
    },
    /// A body that the program makes which assembles the server. No value of the command line means
    /// it.
    Made(Arc<dyn MakeBody>),
}

/// Where a packet program sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, in the network driver if it has that, and otherwise in the kernel's generic mode.
    Xdp,
    /// XDP in the network driver, and nowhere else.
    XdpNative,
    /// The tcx hook of incoming packets, beside an XDP program of somebody else.
    Tcx,
}

impl Hook {
    /// Every hook.
    pub const ALL: [Hook; 3] = [Hook::Xdp, Hook::XdpNative, Hook::Tcx];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Xdp => "xdp",
            Hook::XdpNative => "xdp-native",
            Hook::Tcx => "tcx",
        }
    }
}

impl Accelerate {
    /// The name of the body, without its interface.
    pub fn body(&self) -> &'static str {
        match self {
            Accelerate::Off => "off",
            Accelerate::Model => "model",
            Accelerate::At { hook, .. } => hook.name(),
            Accelerate::Made(maker) => maker.name(),
        }
    }

    /// What the operator has written for it.
    pub(super) fn flag(&self) -> String {
        match self {
            Accelerate::Made(maker) => maker.to_string(),
            _ => format!("--accelerate {self}"),
        }
    }

    /// The interface at which the body is, if it is at one.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Accelerate::Off | Accelerate::Model | Accelerate::Made(_) => None,
            Accelerate::At { interface, .. } => Some(interface),
        }
    }
}

impl fmt::Display for Accelerate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accelerate::Off | Accelerate::Model => f.write_str(self.body()),
            Accelerate::At { hook, interface } => write!(f, "{}:{interface}", hook.name()),
            Accelerate::Made(maker) => write!(f, "{maker}"),
        }
    }
}

impl FromStr for Accelerate {
    type Err = String;

    fn from_str(text: &str) -> Result<Accelerate, String> {
        match text {
            "off" => return Ok(Accelerate::Off),
            "model" => return Ok(Accelerate::Model),
            _ => {}
        }
        let (name, interface) = text.split_once(':').unwrap_or((text, ""));
        if name == CIRCUIT {
            let socket = if interface.is_empty() {
                "SOCKET"
            } else {
                interface
            };
            return Err(format!(
                "this program cannot fill a simulated circuit: leave --accelerate out and run \
                 `glimmer-cosim serve --circuit {socket}`, which takes the same arguments"
            ));
        }
        let hook = Hook::ALL.into_iter().find(|hook| hook.name() == name);
        let hook = hook.ok_or("one of off, model, xdp:IF, xdp-native:IF and tcx:IF")?;
        if interface.is_empty() {
            return Err(format!(
                "name the interface: {name}:IF, such as {name}:eth0"
            ));
        }
        let is_part = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        if interface.len() > NAME_BYTES_MAX || !interface.chars().all(is_part) {
            return Err(format!("{interface:?} is not the name of an interface"));
        }
        Ok(Accelerate::At {
            hook,
            interface: interface.to_owned(),
        })
    }
}

/// Whose requests a packet program answers (`--accelerate-from`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sources {
    /// Those of the hosts on the interface's link, by its addresses' prefixes.
    #[default]
    OnLink,
    /// Everybody's.
    Any,
    /// Those from these networks: an address and the number of its leading bits that count.
    Networks(Vec<(IpAddr, u8)>),
}

impl FromStr for Sources {
    type Err = String;

    fn from_str(text: &str) -> Result<Sources, String> {
        match text {
            "any" => Ok(Sources::Any),
            text => {
                let networks = text.split(',').map(|network| network_of(network.trim()));
                networks.collect::<Result<_, _>>().map(Sources::Networks)
            }
        }
    }
}

/// A network in CIDR notation, or one address.
fn network_of(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let expected = || format!("{text:?} is not a network, such as 10.0.0.0/8, or \"any\"");
    let address: IpAddr = address.parse().map_err(|_| expected())?;
    let most: u8 = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => most,
        Some(bits) => bits.parse().map_err(|_| expected())?,
    };
    if bits > most {
        return Err(format!("{text}: a prefix has at most {most} bits"));
    }
    let network = masked(address, bits);
    if network != address {
        return Err(format!(
            "{text}: the address has bits after its prefix: write {network}/{bits}, or {address} \
             for one host"
        ));
    }
    Ok((network, bits))
}

/// An address with all bits after the first ones zero.
pub(super) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

/// Which keys the accelerator holds (`--accelerate-policy`).
#[derive(Clone, Copy)]
pub struct HotPolicy(&'static (&'static str, Make));

impl HotPolicy {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.0
    }

    /// Every policy's name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        POLICIES.iter().map(|(name, _)| *name)
    }

    /// The policy for a number of slots, at a time in milliseconds.
    pub(crate) fn make(self, slots: usize, now_ms: u64) -> Box<dyn Policy> {
        (self.0.1)(slots, now_ms)
    }
}

impl Default for HotPolicy {
    fn default() -> HotPolicy {
        HotPolicy(&POLICIES[0])
    }
}

impl fmt::Debug for HotPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for HotPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HotPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<HotPolicy, String> {
        let known = POLICIES.iter().find(|(known, _)| *known == name);
        let names: Vec<_> = HotPolicy::names().collect();
        let expected = || format!("one of {}", names.join(" and "));
        known.map(HotPolicy).ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_read_back() {
        for text in [
            "off",
            "model",
            "xdp:eth0",
            "xdp-native:enp1s0f1np1",
            "tcx:br-0.5",
        ] {
            let setting: Accelerate = text.parse().unwrap();
            assert_eq!(setting.to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_body_is_explained() {
        for (text, reason) in [
            ("on", "one of off, model, xdp:IF"),
            ("xdp", "name the interface: xdp:IF"),
            ("tcx:", "name the interface: tcx:IF"),
            ("rtl:", "run `glimmer-cosim serve --circuit SOCKET`"),
            ("rtl:/c", "run `glimmer-cosim serve --circuit /c`"),
            ("xdp:a/b", "\"a/b\" is not the name of an interface"),
            ("xdp:an-interface-name", "is not the name of an interface"),
            ("xdp:e 0", "is not the name of an interface"),
        ] {
            let error = text.parse::<Accelerate>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn sources_are_networks_or_any() {
        let networks = |text: &str| text.parse::<Sources>();
        assert_eq!(networks("any"), Ok(Sources::Any));
        let both = [
            ("10.0.0.0".parse().unwrap(), 8),
            ("fd00::".parse().unwrap(), 64),
        ];
        assert_eq!(
            networks("10.0.0.0/8, fd00::/64"),
            Ok(Sources::Networks(both.into()))
        );
        let host = [("10.0.0.1".parse().unwrap(), 32)];
        assert_eq!(networks("10.0.0.1"), Ok(Sources::Networks(host.into())));
        let all = [("0.0.0.0".parse().unwrap(), 0), ("::".parse().unwrap(), 0)];
        assert_eq!(
            networks("0.0.0.0/0,::/0"),
            Ok(Sources::Networks(all.into()))
        );
        for (text, reason) in [
            ("", "is not a network"),
            ("10.0.0.0/x", "is not a network"),
            ("10.0.0.0/33", "at most 32 bits"),
            ("fd00::/129", "at most 128 bits"),
            ("10.0.0.1/8", "write 10.0.0.0/8, or 10.0.0.1 for one host"),
            ("10.0.0.0/8,,", "is not a network"),
        ] {
            let error = networks(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn policies_read_back() {
        for name in HotPolicy::names() {
            assert_eq!(name.parse::<HotPolicy>().unwrap().name(), name);
        }
        assert_eq!(HotPolicy::default().name(), "counting");
        let error = "lru".parse::<HotPolicy>().unwrap_err();
        assert_eq!(error, "one of counting and paper");
    }
}

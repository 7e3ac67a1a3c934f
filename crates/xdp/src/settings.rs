//! What the packet program is told.

use crate::error::Error;
use glimmer_base::limits::{HOT_ADDRESSES_MAX, HOT_SLOTS_MAX, HOT_SOURCES_MAX};
use std::net::IpAddr;

/// Most sources of each family that are not answered in any case.
pub const NOT_HOSTS_MAX: usize = 4 * HOT_ADDRESSES_MAX;

/// How the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// XDP in the network driver: the program sees a packet before the kernel has a buffer for it.
    Driver,
    /// XDP in the kernel's receive path, for drivers without XDP.
    Generic,
    /// The tcx hook of incoming packets, which stands beside an XDP program of somebody else.
    Tcx,
}

/// What the packet program is told when it is attached. It does not change afterwards.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interface's index.
    pub ifindex: u32,
    /// How the program is attached.
    pub mode: Mode,
    /// Number of slots.
    pub slots: usize,
    /// Seed of the hash that places keys in slots.
    pub seed: u64,
    /// The server's UDP port for memcached's protocols.
    pub port: u16,
    /// The interface's hardware address.
    pub mac: [u8; 6],
    /// The addresses that are answered for, at most [`ADDRESSES_MAX`] of each family.
    ///
    /// [`ADDRESSES_MAX`]: glimmer_base::limits::HOT_ADDRESSES_MAX
    pub addresses: Vec<IpAddr>,
    /// Who is answered.
    pub sources: Sources,
    /// Sources that are not answered in any case, at most [`NOT_HOSTS_MAX`] of each family: the
    /// interface's addresses, and those by which all hosts on a link are addressed.
    pub not_hosts: Vec<IpAddr>,
    /// The networks on the interface's links: an address and the number of bits. Hosts elsewhere
    /// are answered with packets of at most [`PATH_BYTES_MAX`], and longer ones are the kernel's.
    /// What comes after [`ADDRESSES_MAX`] of a family is left out.
    ///
    /// [`PATH_BYTES_MAX`]: glimmer_base::limits::PATH_BYTES_MAX
    /// [`ADDRESSES_MAX`]: glimmer_base::limits::HOT_ADDRESSES_MAX
    pub links: Vec<(IpAddr, u8)>,
    /// What the redirection to the server's own sockets is told, if there is one beside the
    /// accelerator.
    pub redirection: Option<glimmer_transport::xdp::Settings>,
}

/// Who is answered. A request from elsewhere goes to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Every host.
    Any,
    /// Hosts whose addresses begin with the same bits as one of these, at most [`SOURCES_MAX`] of
    /// each family. An entry is an address and the number of bits.
    ///
    /// [`SOURCES_MAX`]: glimmer_base::limits::HOT_SOURCES_MAX
    Networks(Vec<(IpAddr, u8)>),
}

/// The ways in which the program may make a packet longer, which it tries in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// An XDP program appends bytes, if there is room in the driver's buffer.
    pub tail: bool,
    /// An XDP program moves the start of the frame by up to 192 bytes.
    pub head: bool,
    /// An XDP program marks the packet, and a program at tcx answers it.
    pub hand_over: bool,
}

/// What the interface and the kernel allow.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest frame that the interface sends, in bytes.
    pub frame_bytes_max: u32,
    /// How packets may grow.
    pub growth: Growth,
}

/// The settings as the program has them: `struct settings` in `accel/xdp/settings.h`. What comes
/// from a packet is in the order of the wire.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Raw {
    mac: [u8; 6],
    port: [u8; 2],
    frame_bytes_max: u32,
    growth: u32,
    partial_checksums: u32,
    v4_addresses: u32,
    v6_addresses: u32,
    v4_sources: u32,
    v6_sources: u32,
    v4_not_hosts: u32,
    v6_not_hosts: u32,
    v4_links: u32,
    v6_links: u32,
    reserved: u32,
    v4_address: [[u8; 4]; HOT_ADDRESSES_MAX],
    v4_not_host: NotHosts<4>,
    v6_address: [[u8; 16]; HOT_ADDRESSES_MAX],
    v6_not_host: NotHosts<16>,
    /// Addresses with their masks.
    v4_source: [[[u8; 4]; 2]; HOT_SOURCES_MAX],
    v6_source: [[[u8; 16]; 2]; HOT_SOURCES_MAX],
    v4_link: [[[u8; 4]; 2]; HOT_ADDRESSES_MAX],
    v6_link: [[[u8; 16]; 2]; HOT_ADDRESSES_MAX],
}

const _: () = assert!(size_of::<Raw>() == 56 + 64 + 256 + 256 + 1024 + 256 + 1024 + 128 + 512);

// SAFETY: the structure is made of integers and has no padding, as the sum of the sizes shows.
unsafe impl aya::Pod for Raw {}

/// Addresses of this many bytes that are not answered in any case. The program has them in one
/// row. An array of that length has no default.
type NotHosts<const BYTES: usize> =
    [[[u8; BYTES]; HOT_ADDRESSES_MAX]; NOT_HOSTS_MAX / HOT_ADDRESSES_MAX];

const TOO_MANY_NOT_HOSTS: Error = Error::Settings(
    "the interface has more than 64 addresses of one family, counting those of all hosts on a link",
);
const TOO_MANY_ADDRESSES: Error =
    Error::Settings("the packet program answers for at most 16 addresses of each family");
const TOO_MANY_SOURCES: Error =
    Error::Settings("the packet program answers at most 32 networks of each family");

impl Raw {
    /// The program's form of the settings.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] if they exceed a limit.
    pub fn of(settings: &Settings, limits: &Limits) -> Result<Raw, Error> {
        if !(1..=HOT_SLOTS_MAX).contains(&settings.slots) {
            return Err(Error::Settings("the packet program has 1 to 65536 slots"));
        }
        let growth = limits.growth;
        let mut raw = Raw {
            mac: settings.mac,
            port: settings.port.to_be_bytes(),
            frame_bytes_max: limits.frame_bytes_max,
            growth: u32::from(growth.tail)
                | u32::from(growth.head) << 1
                | u32::from(growth.hand_over) << 2,
            // A frame that the driver sends back has no mark that its checksum is still to be
            // computed, and a buffer of the kernel keeps it.
            partial_checksums: u32::from(settings.mode == Mode::Driver),
            ..Raw::default()
        };
        for address in &settings.addresses {
            match address {
                IpAddr::V4(address) => {
                    let place = raw.v4_address.get_mut(raw.v4_addresses as usize);
                    *place.ok_or(TOO_MANY_ADDRESSES)? = address.octets();
                    raw.v4_addresses += 1;
                }
                IpAddr::V6(address) => {
                    let place = raw.v6_address.get_mut(raw.v6_addresses as usize);
                    *place.ok_or(TOO_MANY_ADDRESSES)? = address.octets();
                    raw.v6_addresses += 1;
                }
            }
        }
        for address in &settings.not_hosts {
            match address {
                IpAddr::V4(address) => {
                    let place = raw.v4_not_host.as_flattened_mut();
                    let place = place.get_mut(raw.v4_not_hosts as usize);
                    *place.ok_or(TOO_MANY_NOT_HOSTS)? = address.octets();
                    raw.v4_not_hosts += 1;
                }
                IpAddr::V6(address) => {
                    let place = raw.v6_not_host.as_flattened_mut();
                    let place = place.get_mut(raw.v6_not_hosts as usize);
                    *place.ok_or(TOO_MANY_NOT_HOSTS)? = address.octets();
                    raw.v6_not_hosts += 1;
                }
            }
        }
        match &settings.sources {
            Sources::Any => (raw.v4_sources, raw.v6_sources) = (1, 1),
            Sources::Networks(networks) => {
                let (v4, v6) = (
                    (&mut raw.v4_source[..], &mut raw.v4_sources),
                    (&mut raw.v6_source[..], &mut raw.v6_sources),
                );
                let all = add_networks(networks, v4, v6);
                all.then_some(()).ok_or(TOO_MANY_SOURCES)?;
            }
        }
        let (v4, v6) = (
            (&mut raw.v4_link[..], &mut raw.v4_links),
            (&mut raw.v6_link[..], &mut raw.v6_links),
        );
        add_networks(&settings.links, v4, v6);
        Ok(raw)
    }
}

/// Addresses with their masks, and how many there are.
type Networks<'a, const BYTES: usize> = (&'a mut [[[u8; BYTES]; 2]], &'a mut u32);

/// Adds networks, each to those of its family. False: there is no room for some of them.
fn add_networks(
    networks: &[(IpAddr, u8)],
    (v4, v4_count): Networks<'_, 4>,
    (v6, v6_count): Networks<'_, 16>,
) -> bool {
    let mut is_room = true;
    for &(address, bits) in networks {
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32u32.saturating_sub(bits.into()));
                let network = [address.octets(), mask.unwrap_or(0).to_be_bytes()];
                is_room &= add(v4, v4_count, network);
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128u32.saturating_sub(bits.into()));
                let network = [address.octets(), mask.unwrap_or(0).to_be_bytes()];
                is_room &= add(v6, v6_count, network);
            }
        }
    }
    is_room
}

fn add<T>(places: &mut [T], count: &mut u32, value: T) -> bool {
    let Some(place) = places.get_mut(*count as usize) else {
        return false;
    };
    *place = value;
    *count += 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_hotset::twin::Prefix;

    const LIMITS: Limits = Limits {
        frame_bytes_max: 1514,
        growth: Growth {
            tail: true,
            head: true,
            hand_over: true,
        },
    };

    fn settings(addresses: Vec<IpAddr>, sources: Sources) -> Settings {
        Settings {
            ifindex: 1,
            mode: Mode::Driver,
            slots: 256,
            seed: 0,
            port: 11211,
            mac: [2; 6],
            addresses,
            sources,
            not_hosts: vec![],
            links: vec![],
            redirection: None,
        }
    }

    #[test]
    fn a_mask_has_the_bits_of_the_prefix() {
        let address: IpAddr = "10.1.2.3".parse().unwrap();
        for bits in 0..=32 {
            let sources = Sources::Networks(vec![(address, bits)]);
            let raw = Raw::of(&settings(vec![], sources), &LIMITS).unwrap();
            let [network, mask] = raw.v4_source[0].map(u32::from_be_bytes);
            for other in (0..32).map(|bit| network ^ 1 << bit) {
                let expected = Prefix { address, bits }.has(IpAddr::V4(other.into()));
                assert_eq!((other ^ network) & mask == 0, expected, "{bits}");
            }
        }
        let address: IpAddr = "fd00::1".parse().unwrap();
        for bits in 0..=128 {
            let sources = Sources::Networks(vec![(address, bits)]);
            let raw = Raw::of(&settings(vec![], sources), &LIMITS).unwrap();
            let [network, mask] = raw.v6_source[0].map(u128::from_be_bytes);
            for other in (0..128).map(|bit| network ^ 1 << bit) {
                let expected = Prefix { address, bits }.has(IpAddr::V6(other.into()));
                assert_eq!((other ^ network) & mask == 0, expected, "{bits}");
            }
        }
    }

    #[test]
    fn limits_are_kept() {
        let address: IpAddr = "10.1.2.3".parse().unwrap();
        let addresses = |count| settings(vec![address; count], Sources::Any);
        assert!(Raw::of(&addresses(HOT_ADDRESSES_MAX), &LIMITS).is_ok());
        let refused = Raw::of(&addresses(HOT_ADDRESSES_MAX + 1), &LIMITS);
        assert!(matches!(refused, Err(Error::Settings(_))));
        let sources = |count| settings(vec![], Sources::Networks(vec![(address, 8); count]));
        assert!(Raw::of(&sources(HOT_SOURCES_MAX), &LIMITS).is_ok());
        let refused = Raw::of(&sources(HOT_SOURCES_MAX + 1), &LIMITS);
        assert!(matches!(refused, Err(Error::Settings(_))));
        let links = Settings {
            links: vec![(address, 24); HOT_ADDRESSES_MAX + 1],
            ..sources(1)
        };
        let raw = Raw::of(&links, &LIMITS).unwrap();
        assert_eq!(raw.v4_links as usize, HOT_ADDRESSES_MAX);
        for address in [address, "fd00::1".parse().unwrap()] {
            let not_hosts = |count| Settings {
                not_hosts: vec![address; count],
                ..sources(1)
            };
            assert!(Raw::of(&not_hosts(NOT_HOSTS_MAX), &LIMITS).is_ok());
            let refused = Raw::of(&not_hosts(NOT_HOSTS_MAX + 1), &LIMITS);
            assert!(matches!(refused, Err(Error::Settings(_))));
        }
        assert!(
            Raw::of(
                &Settings {
                    slots: 0,
                    ..sources(1)
                },
                &LIMITS
            )
            .is_err()
        );
    }
}

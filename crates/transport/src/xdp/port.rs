//! An interface that the server has taken for its datagrams: the program there, and the queues.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use glimmer_base::sync::{AtomicBool, Mutex, Ordering::Relaxed};

use super::program::{AttachError, Hook, Program};
use super::queue::Queue;
use crate::bypass::figures::{Counted, Counts};
use crate::bypass::wire::{self, ETHERNET_BYTES, Reason, Rules};
use crate::interface::{Interface, VETH};
use crate::packet::Bypass;
use crate::sys::ethtool;
use crate::sys::frames::{Frame, Lender};

/// Bytes before each frame that the kernel keeps for programs (XDP_PACKET_HEADROOM).
const HEADROOM_BYTES: u32 = 256;
/// The lengths that a frame may have with the headroom before it: the kernel takes no longer ones
/// than a page.
const SHORT_FRAME_BYTES: u32 = 2 << 10;
const LONG_FRAME_BYTES: u32 = 4 << 10;

/// How frames come from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The kernel copies them after it has made packets of its own of them.
    Generic,
    /// The driver copies them.
    Native,
    /// The driver has the hardware write them where the server reads them.
    ZeroCopy,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Generic => "generic",
            Mode::Native => "native",
            Mode::ZeroCopy => "zero-copy",
        })
    }
}

/// An interface with the program and its queues.
pub struct Port {
    /// What was known of it when it was taken.
    pub interface: Interface,
    /// How frames come from it.
    pub mode: Mode,
    /// Those of its queues that were taken.
    pub queues: Vec<Queue>,
    /// The program at it.
    pub program: Mutex<Program>,
    /// What its devices have counted.
    pub counts: Counts,
    /// The devices that are open.
    pub devices: Mutex<Vec<Weak<dyn Counted>>>,
    /// Bytes of the longest frame that is sent or received.
    pub frame_bytes_max: usize,
    /// Whether the interface was down or gone when something was last to be sent or received by it.
    pub is_away: AtomicBool,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({}, {})", self.interface.name, self.mode)
    }
}

/// Bytes of a frame's memory, and of the longest frame in it, for an interface that sends packets
/// of this length.
pub fn frame_lengths(mtu: u32) -> (u32, u32) {
    let longest = mtu.saturating_add(ETHERNET_BYTES as u32);
    match longest <= SHORT_FRAME_BYTES - HEADROOM_BYTES {
        true => (SHORT_FRAME_BYTES, longest),
        false => (
            LONG_FRAME_BYTES,
            longest.min(LONG_FRAME_BYTES - HEADROOM_BYTES),
        ),
    }
}

impl Port {
    /// Takes an interface with its first `queues` queues, all if that is not said. `given` is the
    /// program, if the interface has it already.
    ///
    /// # Errors
    ///
    /// One line that says what to do.
    pub fn open(
        name: &str,
        queues: Option<u32>,
        is_generic: bool,
        given: Option<(Program, Hook)>,
    ) -> io::Result<Port> {
        let refuse = |reason: String| io::Error::other(format!("xdp:{name}: {reason}"));
        let interface = Interface::named(name)?.ok_or_else(|| {
            refuse("there is no such interface; `ip link` lists those of this machine".into())
        })?;
        let there_are = ethtool::receive_queues(name)?;
        let queues = queues.unwrap_or(there_are);
        if queues > there_are {
            return Err(refuse(format!(
                "the interface has {there_are} queues: give at most xdp:{name}:{there_are}, or \
                 more queues to it with `ethtool -L {name} combined {queues}`"
            )));
        }
        if let Some(command) = interface.tags_command() {
            return Err(refuse(format!(
                "the interface removes VLAN tags, so requests of other networks would be \
                 answered: run `{command}`"
            )));
        }
        let (frame_bytes, frame_bytes_max) = frame_lengths(ethtool::mtu(name)?);
        let (program, hook) = match given {
            Some(given) => given,
            None => attached(&interface, is_generic, frame_bytes_max).map_err(refuse)?,
        };
        let open = |queue| {
            let place = (interface.index, queue);
            Queue::open(place, frame_bytes, hook == Hook::Driver)
        };
        let queues = (0..queues).map(open).collect::<io::Result<Vec<_>>>();
        let queues = queues.map_err(|error| refuse(unopened(&error, name)))?;
        let mode = match hook {
            Hook::Generic => Mode::Generic,
            Hook::Driver if queues.iter().all(Queue::is_zero_copy) => Mode::ZeroCopy,
            Hook::Driver => Mode::Native,
        };
        Ok(Port {
            interface,
            mode,
            queues,
            program: Mutex::new(program),
            counts: Counts::default(),
            devices: Mutex::default(),
            frame_bytes_max: frame_bytes_max as usize,
            is_away: AtomicBool::new(false),
        })
    }

    /// What a device at this address serves: all addresses of the interface if it names none. These
    /// may be none of its family, and all its datagrams go through the kernel's socket then.
    ///
    /// # Errors
    ///
    /// If the interface lacks the address, or has none at all.
    pub fn rules(&self, address: SocketAddr) -> io::Result<Rules> {
        let own = self.interface.addresses.iter().map(|&(ip, _)| ip);
        let serves = |ip: &IpAddr| match address.ip() {
            any if any.is_unspecified() => any.is_ipv4() == ip.is_ipv4(),
            one => one == *ip,
        };
        let addresses: Vec<IpAddr> = own.clone().filter(serves).collect();
        let may_have_none = address.ip().is_unspecified() && own.clone().next().is_some();
        if addresses.is_empty() && !may_have_none {
            let name = &self.interface.name;
            let own: Vec<_> = own.map(|ip| ip.to_string()).collect();
            let own = if own.is_empty() {
                "no address".into()
            } else {
                own.join(" and ")
            };
            return Err(io::Error::other(format!(
                "xdp:{name}: the interface has {own}: give one of its addresses with -l"
            )));
        }
        Ok(Rules {
            mac: self.interface.mac,
            interface: self.interface.index,
            all_hosts: wire::all_hosts(&self.interface.addresses),
            links: self.interface.addresses.clone(),
            addresses,
            own: self.interface.of_host.clone(),
            port: address.port(),
            // Between drivers each frame is one datagram. In the generic mode the program has left
            // such frames to the kernel.
            accepts_partial: self.interface.driver == VETH && self.mode != Mode::Generic,
        })
    }

    /// What it and its devices have counted.
    pub fn figures(&self) -> Bypass {
        let counts = &self.counts;
        let mut figures = Bypass {
            interface: self.interface.name.clone(),
            mode: self.mode.to_string(),
            queues: self.queues.len(),
            is_away: self.is_away.load(Relaxed),
            warning: self.interface.tags_warning(),
            received: counts.received.load(Relaxed),
            sent: counts.sent.load(Relaxed),
            elsewhere: counts.elsewhere.load(Relaxed),
            kernel_received: counts.kernel_received.load(Relaxed),
            kernel_sent: counts.kernel_sent.load(Relaxed),
            refused: Reason::ALL
                .iter()
                .map(|&reason| (reason.name(), counts.reasons[reason as usize].load(Relaxed)))
                .collect(),
            bursts: counts
                .bursts
                .iter()
                .map(|count| count.load(Relaxed))
                .collect(),
            ..Bypass::default()
        };
        for queue in &self.queues {
            let (free, fill) = queue.spare();
            figures.frames_free += free as u64;
            figures.fill_waiting += u64::from(fill);
        }
        let devices: Vec<_> = self
            .devices
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        devices
            .iter()
            .for_each(|device| device.add_to(&mut figures));
        figures.steering = (figures.elsewhere > 0).then(|| {
            format!(
                "ethtool -N {} flow-type udp4 dst-port PORT action QUEUE",
                self.interface.name
            )
        });
        figures
    }

    /// The number by which batches know a frame.
    #[inline]
    pub fn frame_id(queue: usize, address: u64) -> u64 {
        (queue as u64) << 32 | address
    }

    /// Queue and address of a frame.
    #[inline]
    pub fn of_frame_id(id: u64) -> (usize, u64) {
        ((id >> 32) as usize, id & u64::from(u32::MAX))
    }
}

/// Attaches the program in the driver, or where the kernel does without the driver.
fn attached(
    interface: &Interface,
    is_generic: bool,
    frame_bytes_max: u32,
) -> Result<(Program, Hook), String> {
    let attach = |hook| {
        let program = Program::attach(interface.index, hook, interface.mac, frame_bytes_max);
        program.map(|program| (program, hook))
    };
    let attached = match attach(if is_generic {
        Hook::Generic
    } else {
        Hook::Driver
    }) {
        Err(AttachError::NoDriverSupport) => attach(Hook::Generic),
        attached => attached,
    };
    attached.map_err(|error| match error {
        AttachError::NoRights => {
            "this needs the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW: start as root, \
             and give another user with -u; --packet-transport udp needs none"
                .into()
        }
        AttachError::Taken => format!(
            "the interface has another XDP program: detach that with `ip link set {} xdp off`, or \
             stop the program that it belongs to",
            interface.name
        ),
        AttachError::NoDriverSupport => "the kernel has no XDP (CONFIG_XDP_SOCKETS)".into(),
        AttachError::Other(error) => format!("{error}; --packet-transport udp needs no program"),
    })
}

/// Why a queue cannot be opened.
fn unopened(error: &io::Error, name: &str) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "this needs the capability CAP_NET_RAW: start as root, and give another user with -u"
                .into()
        }
        Some(libc::EBUSY) => format!(
            "another program has a queue of the interface: stop it, or give another interface than \
             {name}"
        ),
        Some(libc::EAFNOSUPPORT) => "the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)".into(),
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "there is not enough memory that may be locked: raise `ulimit -l`".into()
        }
        _ => format!("{error}; --packet-transport udp needs no queue"),
    }
}

impl Lender for Port {
    fn take_back(&self, frames: &[Frame]) {
        let queue_of = |frame: &Frame| Port::of_frame_id(frame.id).0;
        for frames in frames.chunk_by(|one, next| queue_of(one) == queue_of(next)) {
            let addresses = frames.iter().map(|frame| Port::of_frame_id(frame.id).1);
            self.queues[queue_of(&frames[0])].give_back(addresses);
        }
    }
}

/// Routes to devices, which end with the last of the devices.
pub struct Registration {
    port: Arc<Port>,
    addresses: Vec<SocketAddr>,
    /// The first number of the sockets, and how many these are.
    numbers: (u32, u32),
}

impl Registration {
    /// Has the program redirect what arrives for these rules to the sockets of these numbers.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn new(port: &Arc<Port>, rules: &Rules, sockets: (u32, u32, u32)) -> io::Result<Self> {
        let mut registration = Registration {
            port: port.clone(),
            addresses: Vec::new(),
            numbers: (sockets.0, sockets.1 * sockets.2),
        };
        for &ip in &rules.addresses {
            let address = SocketAddr::new(ip, rules.port);
            port.program.lock().add_route(address, sockets)?;
            registration.addresses.push(address);
        }
        Ok(registration)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut program = self.port.program.lock();
        for &address in &self.addresses {
            program.remove_route(address);
        }
        let (first, count) = self.numbers;
        program.release(first, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_long_as_the_interface_needs() {
        assert_eq!(frame_lengths(1500), (2048, 1514));
        assert_eq!(frame_lengths(1778), (2048, 1792));
        assert_eq!(frame_lengths(1779), (4096, 1793));
        assert_eq!(frame_lengths(9000), (4096, 3840));
    }

    #[test]
    fn a_frame_is_known_by_queue_and_address() {
        let id = Port::frame_id(3, 4096 * 5);
        assert_eq!(Port::of_frame_id(id), (3, 4096 * 5));
    }

    #[test]
    fn what_cannot_be_opened_is_refused_with_what_to_do() {
        for (name, queues, part) in [
            ("none-such", None, "ip link"),
            ("lo", Some(9), "at most xdp:lo:1"),
        ] {
            let refused = Port::open(name, queues, false, None)
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains(part) && !refused.contains('\n'),
                "{refused}"
            );
        }
        for code in [
            libc::EPERM,
            libc::EBUSY,
            libc::EAFNOSUPPORT,
            libc::ENOBUFS,
            libc::EIO,
        ] {
            let line = unopened(&io::Error::from_raw_os_error(code), "eth0");
            assert!(!line.contains('\n') && line.len() > 30, "{line}");
        }
    }
}

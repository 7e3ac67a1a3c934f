//! From the command line to devices.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use glimmer_base::sync::{Mutex, Ordering::Relaxed};

use super::attached::Attached;
use super::device::{Parts, XdpDevice};
use super::port::{Port, Registration, frame_lengths};
use super::program::{self, Hook, Program, Settings};
use super::queue::queue_bytes;
use crate::packet::{Bypass, Instruction, Named, PacketDevice, PacketTransport, TransportKind};
use crate::sys::ethtool;
use crate::udp::UdpDevice;

/// An interface as a packet transport. It is taken when the first device is opened, and for as long
/// as this exists.
pub struct Xdp {
    interface: String,
    /// The number of queues to take; all, if that is not said.
    queues: Option<u32>,
    /// Whether to do without the driver, if it could.
    is_generic: bool,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// The program, from when somebody has given it until the port takes it.
    program: Option<(Program, Hook)>,
    port: Option<Arc<Port>>,
    /// How many devices are alone at their ports, by address: the n-th is the n-th worker's.
    alone: HashMap<IpAddr, usize>,
}

impl fmt::Debug for Xdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xdp({}, {:?})", self.interface, self.queues)
    }
}

impl Xdp {
    /// The kind of this transport.
    pub const KIND: TransportKind = TransportKind {
        name: "xdp",
        with: Xdp::with,
    };

    /// An interface with its first `queues` queues, all if that is not said. `is_generic`: without
    /// its driver.
    pub fn new(interface: &str, queues: Option<u32>, is_generic: bool) -> Xdp {
        Xdp {
            interface: interface.to_owned(),
            queues,
            is_generic,
            taken: Mutex::default(),
        }
    }

    fn with(argument: Option<&str>) -> Named {
        let wrong = || "xdp:IF, or xdp:IF:QUEUES with a number from 1 on, or xdp:IF:QUEUES:generic";
        let mut parts = argument.unwrap_or_default().split(':');
        let interface = parts.next().unwrap_or_default();
        let queues = match parts.next() {
            None | Some("") => None,
            Some(text) => Some(
                text.parse()
                    .ok()
                    .filter(|&queues| queues > 0)
                    .ok_or_else(wrong)?,
            ),
        };
        let is_generic = match parts.next() {
            None => false,
            Some("generic") => true,
            Some(_) => return Err(wrong().into()),
        };
        if interface.is_empty() || parts.next().is_some() {
            return Err(wrong().into());
        }
        Ok(Arc::new(Xdp::new(interface, queues, is_generic)))
    }

    /// The transport as one of this kind, if it is one.
    pub fn of(transport: &dyn PacketTransport) -> Option<&Xdp> {
        transport.as_any()?.downcast_ref()
    }

    /// Settings for a program at this interface that is to redirect, and be
    /// [given](Xdp::give_program) to this transport.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn program_settings(&self, hook: Hook, mac: [u8; 6]) -> io::Result<Settings> {
        let (_, frame_bytes_max) = frame_lengths(ethtool::mtu(&self.interface)?);
        Ok(program::settings(hook, mac, frame_bytes_max))
    }

    /// Whether it is to do without the interface's driver.
    pub fn is_generic(&self) -> bool {
        self.is_generic
    }

    /// Has the transport use a program that is at the interface already, instead of one of its own.
    /// It stays there for as long as its giver keeps it.
    pub fn give_program(&self, program: Program, hook: Hook) {
        self.taken.lock().program = Some((program, hook));
    }

    /// Takes the interface, unless that is done. Returns the number of devices that are alone and
    /// were opened at this address before, too.
    fn take(&self, alone: Option<IpAddr>) -> io::Result<(Arc<Port>, usize)> {
        let mut taken = self.taken.lock();
        let port = match &taken.port {
            Some(port) => port.clone(),
            None => {
                let given = taken.program.take();
                let port = Port::open(&self.interface, self.queues, self.is_generic, given)?;
                taken.port.insert(Arc::new(port)).clone()
            }
        };
        let before = alone.map_or(0, |ip| {
            let count = taken.alone.entry(ip).or_default();
            *count += 1;
            *count - 1
        });
        Ok((port, before))
    }

    /// Devices of workers that share an address, each with a socket of the kernel's. `home` is the
    /// queue that is meant for a worker which has its address alone; others share out the queues.
    fn devices(
        port: &Arc<Port>,
        kernel: Vec<UdpDevice>,
        home: Option<usize>,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let workers = kernel.len();
        let rules = port.rules(kernel[0].address()?)?;
        let queues = match rules.addresses.as_slice() {
            [] => 0,
            _ => port.queues.len(),
        };
        // What arrives at a queue is spread over the workers that are at it.
        let at_each = if workers == 1 {
            1
        } else {
            workers.div_ceil(queues.max(1))
        };
        let first = port.program.lock().reserve((queues * at_each) as u32)?;
        let mut sockets: Vec<Vec<Attached>> = kernel.iter().map(|_| Vec::new()).collect();
        for queue in 0..queues {
            for place in 0..at_each {
                let socket = port.queues[queue].socket()?;
                let number = first + (queue * at_each + place) as u32;
                port.program.lock().set_socket(number, socket.as_fd())?;
                sockets[(queue + place * queues) % workers].push(Attached::new(socket, queue));
            }
        }
        // Nothing is redirected before all sockets are there.
        let numbers = (first, queues as u32, at_each as u32);
        let registration = Arc::new(Registration::new(port, &rules, numbers)?);
        let device = |(sockets, kernel)| {
            let parts = Parts {
                sockets,
                kernel,
                rules: rules.clone(),
                registration: registration.clone(),
                home,
            };
            Ok(Box::new(XdpDevice::new(port, parts)?) as _)
        };
        sockets.into_iter().zip(kernel).map(device).collect()
    }
}

impl PacketTransport for Xdp {
    fn name(&self) -> &'static str {
        Xdp::KIND.name
    }

    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>> {
        let kernel = UdpDevice::bind(address)?;
        let (port, before) = self.take(Some(address.ip()))?;
        let home = before % port.queues.len();
        let mut devices = Xdp::devices(&port, vec![kernel], Some(home))?;
        Ok(devices.pop().expect("one socket, one device"))
    }

    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let kernel = UdpDevice::bind_group(address, workers)?;
        let (port, _) = self.take(None)?;
        Xdp::devices(&port, kernel, None)
    }

    /// The program steers what goes through the kernel's stack. What arrives at a queue is spread
    /// by its peer, and workers pass on what is for others.
    fn open_steered(
        &self,
        address: SocketAddr,
        workers: usize,
        program: &[Instruction],
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let kernel = UdpDevice::bind_steered(address, workers, program)?;
        let (port, _) = self.take(None)?;
        Xdp::devices(&port, kernel, None)
    }

    fn interface(&self) -> Option<&str> {
        Some(&self.interface)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    /// As if both protocols were served over both families of addresses. Each worker has a socket
    /// at every queue for native clients, and workers share out the queues for memcached's.
    fn memory_bytes(&self, workers: usize) -> usize {
        // An interface that does not exist, or lacks queues, is refused when it is taken.
        let there_are = ethtool::receive_queues(&self.interface).unwrap_or(0);
        let queues = self.queues.unwrap_or(there_are).min(there_are);
        let mtu = ethtool::mtu(&self.interface);
        let (frame_bytes, _) = frame_lengths(mtu.unwrap_or(0));
        let queues = queues as usize;
        let sockets = 2 * (workers + workers.div_ceil(queues.max(1)));
        queues * queue_bytes(frame_bytes, sockets)
    }

    fn is_away(&self) -> bool {
        let port = &self.taken.lock().port;
        port.as_ref().is_some_and(|port| port.is_away.load(Relaxed))
    }

    fn figures(&self) -> Option<Bypass> {
        let port = self.taken.lock().port.clone();
        port.map(|port| port.figures())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_and_perhaps_its_queues() {
        let named = |text| Xdp::with(text).map(|_| ());
        for right in ["eth0", "eth0:4", "eth0:4:generic", "eth0::generic"] {
            assert_eq!(named(Some(right)), Ok(()), "{right}");
        }
        for wrong in [
            "",
            ":4",
            "eth0:0",
            "eth0:-1",
            "eth0:x",
            "eth0:4:fast",
            "eth0:4:generic:",
        ] {
            assert!(
                named(Some(wrong)).unwrap_err().starts_with("xdp:IF, or"),
                "{wrong}"
            );
        }
        assert!(named(None).is_err());
    }
}

//! From the command line to devices.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_base::sync::{AtomicUsize, Mutex, Ordering::Relaxed};

use super::device::DpdkDevice;
use super::mailbox::Mailbox;
use super::nic;
use super::port::Port;
use super::setting::Setting;
use crate::packet::{Bypass, Instruction, Named, PacketDevice, PacketTransport, TransportKind};

/// A port of DPDK's as a packet transport. It is taken when the first device is opened, and for as
/// long as this exists.
#[derive(Debug)]
pub struct Dpdk {
    setting: Setting,
    name: String,
    workers: AtomicUsize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    port: Option<Arc<Port>>,
    /// How many devices are alone at their ports, by address: the n-th is the n-th worker's.
    alone: HashMap<IpAddr, usize>,
}

impl Dpdk {
    /// The kind of this transport.
    pub const KIND: TransportKind = TransportKind {
        name: "dpdk",
        with: Dpdk::with,
    };

    fn new(setting: Setting) -> Dpdk {
        Dpdk {
            name: format!("DPDK port {}", setting.port),
            setting,
            workers: AtomicUsize::new(1),
            taken: Mutex::default(),
        }
    }

    fn with(argument: Option<&str>) -> Named {
        let setting: Setting = argument.unwrap_or_default().parse()?;
        Ok(Arc::new(Dpdk::new(setting)))
    }

    fn take(&self, taken: &mut Taken) -> io::Result<Arc<Port>> {
        if let Some(port) = &taken.port {
            return Ok(port.clone());
        }
        let port = Port::open(&self.setting, self.workers.load(Relaxed));
        let port = port.map_err(|line| io::Error::other(format!("dpdk: {line}")))?;
        Ok(taken.port.insert(port).clone())
    }

    /// Devices that share an address, whose mailboxes these are.
    fn devices(
        port: &Arc<Port>,
        address: SocketAddr,
        mailboxes: Vec<Mailbox>,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        let mailboxes: Vec<_> = mailboxes.into_iter().map(Arc::new).collect();
        let registration = Arc::new(port.register(address, &mailboxes)?);
        let device = |mailbox| Box::new(DpdkDevice::new(port, &registration, mailbox)) as _;
        Ok(mailboxes.into_iter().map(device).collect())
    }
}

impl PacketTransport for Dpdk {
    fn name(&self) -> &'static str {
        Dpdk::KIND.name
    }

    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn PacketDevice>> {
        let mut taken = self.taken.lock();
        let port = self.take(&mut taken)?;
        let before = taken.alone.entry(address.ip()).or_default();
        let home = *before % port.nic.queues();
        *before += 1;
        let mut devices = Dpdk::devices(&port, address, vec![Mailbox::new(home, true)])?;
        Ok(devices.pop().expect("one mailbox, one device"))
    }

    fn open_group(
        &self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        self.expect_workers(workers);
        let port = self.take(&mut self.taken.lock())?;
        let queues = port.nic.queues();
        let mailbox = |worker| Mailbox::new(worker % queues, false);
        Dpdk::devices(&port, address, (0..workers).map(mailbox).collect())
    }

    /// The NIC spreads what arrives, and workers pass on what is for others.
    fn open_steered(
        &self,
        address: SocketAddr,
        workers: usize,
        _: &[Instruction],
    ) -> io::Result<Vec<Box<dyn PacketDevice>>> {
        self.open_group(address, workers)
    }

    fn interface(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn memory_bytes(&self, workers: usize) -> usize {
        let queues = self.setting.queues.map_or(workers, usize::from);
        nic::frames_bytes(queues.min(workers), workers, self.setting.mtu)
    }

    fn expect_workers(&self, workers: usize) {
        self.workers.fetch_max(workers, Relaxed);
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
    fn a_port_has_an_address_and_its_frames_count() {
        assert!(Dpdk::with(None).is_err() && Dpdk::with(Some("--no-huge")).is_err());
        let dpdk = Dpdk::with(Some("ip=10.0.0.1/24,port=1 -l 0")).unwrap();
        assert_eq!(
            (dpdk.name(), dpdk.interface()),
            ("dpdk", Some("DPDK port 1"))
        );
        let bytes = dpdk.memory_bytes(2);
        assert!((16 << 20..22 << 20).contains(&bytes), "{bytes}");
        let long = Dpdk::with(Some("ip=10.0.0.1/24,mtu=9000")).unwrap();
        assert!(long.memory_bytes(1) > bytes);
    }
}

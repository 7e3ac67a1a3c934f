//! Binding addresses, before a client is served at them.

pub(crate) mod packets;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_base::limits::WORKERS_MAX;
use glimmer_proto::Accepts;
use glimmer_transport::stream::StreamListener;
use glimmer_transport::udp::UdpDevice;
use glimmer_transport::{Endpoint, Listener, tcp, unix};

use crate::busy_poll::BusyPoll;
use crate::config::{Address, Error, NodeConfig};
use crate::devices::Devices;
use crate::packet::source::{PacketSource, Service};
use crate::stream::accept::StreamSource;

/// What comes in to one worker, and where.
#[derive(Default)]
pub(crate) struct Sources {
    pub listeners: Vec<StreamSource>,
    /// Its own devices. Once there are workers, those of all of them, in the same order for each.
    pub packets: Vec<PacketSource>,
}

/// Sockets that were bound before this process began, and that stay open when it ends.
///
/// Sockets that the server binds share an address, one for each worker. Of an inherited socket
/// there is one, so one worker accepts the connections of a listener, which are assigned to all
/// workers as others are. The datagrams of a socket are in the RX queue of the first worker.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Listening sockets.
    pub listeners: Vec<Listener>,
    /// Sockets of UDP.
    pub datagrams: Vec<UdpDevice>,
}

/// An address that was passed over, because another one of its name is free.
#[derive(Debug)]
pub struct PassedOver {
    /// The address, and the transport if it is UDP.
    pub address: String,
    /// Why it cannot be bound.
    pub source: io::Error,
}

/// A node whose addresses are bound and that has no workers yet. Clients connect already, and wait.
pub struct Bound {
    pub(crate) config: NodeConfig,
    pub(crate) sources: Vec<Sources>,
    pub(crate) addresses: Vec<Address>,
    pub(crate) udp: Vec<SocketAddr>,
    pub(crate) native_ports: Vec<(IpAddr, Arc<[u16]>)>,
    passed_over: Vec<PassedOver>,
}

impl Bound {
    /// Binds the addresses, for `workers` workers.
    pub fn bind(config: NodeConfig, workers: usize) -> Result<Bound, Error> {
        Bound::bind_beside(config, workers, Inherited::default())
    }

    /// Binds the addresses beside sockets that are bound already, for `workers` workers. In the
    /// lists of the configuration that have an entry for each of [`NodeConfig::listen`], inherited
    /// listeners come after these.
    pub fn bind_beside(
        config: NodeConfig,
        workers: usize,
        inherited: Inherited,
    ) -> Result<Bound, Error> {
        assert!(
            (1..=WORKERS_MAX).contains(&workers),
            "1 to {WORKERS_MAX} workers"
        );
        let mut sources: Vec<Sources> = (0..workers).map(|_| Sources::default()).collect();
        let mut passed_over = Vec::new();

        let packets = config.packets.clone();
        let transport = &*packets;
        transport.expect_workers(workers);
        let bind =
            |index: usize| packets::listen_memcached(transport, config.udp[index], &mut sources);
        let bound = bind_names(config.udp.len(), &config.udp_names, bind);
        let (mut udp, in_use) = bound.map_err(|(index, source)| Error::Udp {
            address: config.udp[index],
            source,
        })?;
        passed_over.extend(in_use.into_iter().map(|(index, source)| PassedOver {
            address: format!("{} for UDP", config.udp[index]),
            source,
        }));

        for device in inherited.datagrams {
            udp.push(device.address()?);
            packets::serve_inherited(device, &mut sources);
        }

        let mut native_ports = Vec::new();
        if let Some(native) = &config.native {
            for &address in &native.listen {
                let fail = |(address, source)| Error::Udp { address, source };
                // One worker needs no steering.
                let ports = if native.single_port && workers > 1 {
                    let map = native.rules.layout.map;
                    packets::listen_native_shared(transport, address, map, &mut sources)
                } else {
                    packets::listen_native(transport, address, &mut sources)
                };
                native_ports.push((address.ip(), ports.map_err(fail)?));
            }
        }

        if let BusyPoll::For(us) = config.busy_poll {
            let polling = packets::poll_busily(&sources, us);
            polling.map_err(|(address, source)| Error::Udp { address, source })?;
        }

        // Last, so that a client that can connect finds the other sockets open.
        let accepts = |index: usize| {
            let accepts = config.accepts_at.get(index).copied();
            accepts.unwrap_or(config.accepts)
        };
        let bind = |index: usize| listen(index, accepts(index), &config, &mut sources);
        let bound = bind_names(config.listen.len(), &config.listen_names, bind);
        let (mut addresses, in_use) = bound.map_err(|(index, source)| Error::Listen {
            address: config.listen[index].clone(),
            source,
        })?;
        passed_over.extend(in_use.into_iter().map(|(index, source)| PassedOver {
            address: config.listen[index].to_string(),
            source,
        }));
        for (number, listener) in inherited.listeners.into_iter().enumerate() {
            addresses.extend(Endpoint::local(&listener).map(Address::from));
            let index = config.listen.len() + number;
            sources[number % workers].listeners.push(StreamSource {
                listener: encrypted(&config, index, Box::new(listener)),
                accepts: accepts(index),
                is_inherited: true,
            });
        }
        Ok(Bound {
            config,
            sources,
            addresses,
            udp,
            native_ports,
            passed_over,
        })
    }

    /// What would be bound if these devices were sockets.
    pub(crate) fn of(config: NodeConfig, devices: Vec<Devices>) -> io::Result<Bound> {
        let mut sources = Vec::with_capacity(devices.len());
        let mut native = Vec::new();
        for (worker, devices) in devices.into_iter().enumerate() {
            let listeners = devices.listeners.into_iter();
            let packets = devices.memcached.into_iter();
            sources.push(Sources {
                listeners: listeners
                    .map(|(listener, accepts)| StreamSource {
                        listener,
                        accepts,
                        is_inherited: false,
                    })
                    .collect(),
                packets: packets
                    .map(|device| PacketSource::new(worker, device, Service::Memcached))
                    .collect(),
            });
            native.extend(devices.native);
        }
        let mut native_ports = Vec::new();
        if config.native.is_some() {
            assert_eq!(native.len(), sources.len(), "a native device per worker");
            let addresses = native.iter().map(|device| device.address());
            let addresses = addresses.collect::<io::Result<Vec<_>>>()?;
            let ports: Arc<[u16]> = addresses.iter().map(SocketAddr::port).collect();
            native_ports.extend(addresses.first().map(|first| (first.ip(), ports.clone())));
            packets::serve_native(native, ports, &mut sources);
        }
        Ok(Bound {
            sources,
            config,
            addresses: Vec::new(),
            udp: Vec::new(),
            native_ports,
            passed_over: Vec::new(),
        })
    }

    /// Where connections come in, with the ports that were chosen.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The IP addresses among them.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let address = |address: &Address| match *address {
            Address::Tcp(address) => Some(address),
            Address::Unix { .. } => None,
        };
        self.addresses.iter().filter_map(address).collect()
    }

    /// The addresses of UDP sockets, with the ports that were chosen.
    pub fn udp_addresses(&self) -> &[SocketAddr] {
        &self.udp
    }

    /// The addresses at which this node does not listen, although it was asked to.
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.passed_over
    }
}

/// What was bound of the addresses of several names, and what was passed over.
type BoundNames<T> = (Vec<T>, Vec<(usize, io::Error)>);

/// Binds addresses as memcached does: of the addresses that one name stands for, those in use are
/// passed over if at least one can be bound, and so are those of a family that this machine lacks.
/// Every other error ends it. `names` has the name of each address; each one without is a name of
/// its own. Fails with the number of an address.
fn bind_names<T>(
    addresses: usize,
    names: &[usize],
    mut bind: impl FnMut(usize) -> io::Result<T>,
) -> Result<BoundNames<T>, (usize, io::Error)> {
    // Names are numbered from 0, so that no address has these.
    let name_of = |index: usize| names.get(index).copied().unwrap_or(usize::MAX - index);
    let mut bound = Vec::new();
    let mut names_bound = Vec::new();
    let mut passed_over = Vec::new();
    for index in 0..addresses {
        match bind(index) {
            Ok(address) => {
                bound.push(address);
                names_bound.push(name_of(index));
            }
            Err(error) if may_be_passed_over(&error) => passed_over.push((index, error)),
            Err(error) => return Err((index, error)),
        }
    }
    let is_missing = |(index, _): &(usize, _)| !names_bound.contains(&name_of(*index));
    match passed_over.iter().position(is_missing) {
        Some(first) => Err(passed_over.swap_remove(first)),
        None => Ok((bound, passed_over)),
    }
}

fn may_be_passed_over(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ADDRINUSE | Errno::AFNOSUPPORT)
    )
}

/// Gives every worker a listener on one address, or one worker a listener on one path, which the
/// kernel does not let them share; whose the connections are is decided when they are accepted.
/// Returns the address with its port.
fn listen(
    index: usize,
    accepts: Accepts,
    config: &NodeConfig,
    sources: &mut [Sources],
) -> io::Result<Address> {
    let address = &config.listen[index];
    match address {
        Address::Tcp(address) => {
            tcp::probe(*address)?;
            let mut chosen = *address;
            for sources in sources {
                let listener = Listener::bind_with(chosen, config.backlog, config.liveness)?;
                chosen = listener.address()?;
                sources.listeners.push(StreamSource {
                    listener: encrypted(config, index, Box::new(listener)),
                    accepts,
                    is_inherited: false,
                });
            }
            Ok(Address::Tcp(chosen))
        }
        Address::Unix { path, mode } => {
            let listener = unix::listen(path, *mode, config.backlog)?;
            sources[0].listeners.push(StreamSource {
                listener: Box::new(listener),
                accepts,
                is_inherited: false,
            });
            Ok(address.clone())
        }
    }
}

/// The listener of this index, with connections that are encrypted if those are to be.
fn encrypted(
    config: &NodeConfig,
    index: usize,
    listener: Box<dyn StreamListener>,
) -> Box<dyn StreamListener> {
    match &config.encryption {
        Some(encryption) => encryption.over(listener, index),
        None => listener,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// Which of several addresses are bound or passed over, where these fail with these errors.
    fn outcome(
        names: &[usize],
        errors: &[(usize, Errno)],
    ) -> Result<(Vec<usize>, Vec<usize>), usize> {
        let bind = |index: usize| match errors.iter().find(|(failing, _)| *failing == index) {
            Some(&(_, error)) => Err(error.into()),
            None => Ok(index),
        };
        let bound = bind_names(names.len(), names, bind);
        let numbers = |passed_over: Vec<(usize, io::Error)>| {
            passed_over.into_iter().map(|(index, _)| index).collect()
        };
        bound
            .map(|(bound, passed_over)| (bound, numbers(passed_over)))
            .map_err(|(index, _)| index)
    }

    #[test]
    fn an_address_in_use_is_passed_over_where_its_name_has_another() {
        let all = &[0, 0, 1];
        assert_eq!(outcome(all, &[]), Ok((vec![0, 1, 2], vec![])));
        for error in [Errno::ADDRINUSE, Errno::AFNOSUPPORT] {
            assert_eq!(outcome(all, &[(0, error)]), Ok((vec![1, 2], vec![0])));
            assert_eq!(outcome(all, &[(1, error)]), Ok((vec![0, 2], vec![1])));
            assert_eq!(outcome(all, &[(2, error)]), Err(2));
            assert_eq!(outcome(all, &[(0, error), (1, error)]), Err(0));
        }
        for error in [Errno::ADDRNOTAVAIL, Errno::ACCESS, Errno::MFILE] {
            assert_eq!(outcome(all, &[(1, error)]), Err(1));
        }
    }

    #[test]
    fn an_address_without_a_name_is_one_of_its_own() {
        let bind = |index: usize| match index {
            1 => Err(Errno::ADDRINUSE.into()),
            _ => Ok(index),
        };
        let (index, error) = bind_names(3, &[], bind).unwrap_err();
        assert_eq!((index, error.kind()), (1, io::ErrorKind::AddrInUse));
    }
}

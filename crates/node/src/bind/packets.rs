//! From an address to packet devices, one for each worker.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_dispatch::PartitionMap;
use glimmer_transport::packet::{PacketDevice, PacketTransport};
use glimmer_transport::udp::UdpDevice;

use super::Sources;
use crate::packet::native::steering;
use crate::packet::source::{PacketSource, Service};

/// Gives every worker a device for memcached's UDP protocol at one address, and returns the address
/// with its port.
pub(super) fn listen_memcached(
    transport: &dyn PacketTransport,
    address: SocketAddr,
    sources: &mut [Sources],
) -> io::Result<SocketAddr> {
    let devices = transport.open_group(address, sources.len())?;
    let chosen = devices[0].address()?;
    for (worker, (sources, device)) in sources.iter_mut().zip(devices).enumerate() {
        let source = PacketSource::new(worker, device, Service::Memcached);
        sources.packets.push(source);
    }
    Ok(chosen)
}

/// Gives the first worker a device for memcached's UDP protocol.
pub(super) fn serve_inherited(device: UdpDevice, sources: &mut [Sources]) {
    let source = PacketSource::new(0, Box::new(device), Service::Memcached);
    sources[0].packets.push(source);
}

/// Gives every worker a device of its own for native clients: at the port of this address and those
/// that follow, or at any that are free if it is 0. Returns the ports.
pub(super) fn listen_native(
    transport: &dyn PacketTransport,
    address: SocketAddr,
    sources: &mut [Sources],
) -> Result<Arc<[u16]>, (SocketAddr, io::Error)> {
    let mut devices = Vec::with_capacity(sources.len());
    let mut ports = Vec::with_capacity(sources.len());
    for worker in 0..sources.len() {
        let port = match (address.port(), u16::try_from(worker)) {
            (0, _) => Some(0),
            (first, Ok(worker)) => first.checked_add(worker),
            (_, Err(_)) => None,
        };
        let none = || io::Error::other("there are fewer ports after it than workers");
        let port = port.ok_or_else(|| (address, none()))?;
        let address = SocketAddr::new(address.ip(), port);
        let opened = transport.open(address).and_then(|device| {
            ports.push(device.address()?.port());
            devices.push(device);
            Ok(())
        });
        opened.map_err(|error| (address, error))?;
    }
    let ports: Arc<[u16]> = ports.into();
    serve_native(devices, ports.clone(), sources);
    Ok(ports)
}

/// Gives every worker a device for native clients at the same port, any that is free if it is 0.
/// Returns the port, once for each worker.
pub(super) fn listen_native_shared(
    transport: &dyn PacketTransport,
    address: SocketAddr,
    map: PartitionMap,
    sources: &mut [Sources],
) -> Result<Arc<[u16]>, (SocketAddr, io::Error)> {
    assert_eq!(map.cores(), sources.len());
    let fail = |error| (address, error);
    let devices = transport.open_steered(address, sources.len(), &steering::program(map));
    let devices = devices.map_err(fail)?;
    let port = devices[0].address().map_err(fail)?.port();
    let ports: Arc<[u16]> = vec![port; devices.len()].into();
    serve_native(devices, ports.clone(), sources);
    Ok(ports)
}

/// Has the kernel look at the NICs' queues for the devices of all workers.
pub(super) fn poll_busily(sources: &[Sources], us: u32) -> Result<(), (SocketAddr, io::Error)> {
    let mut all = sources.iter().flat_map(|sources| &sources.packets);
    all.try_for_each(|source| source.poll_busily(us))
}

/// Has every worker serve native clients at a device of its own. All workers know all ports.
pub(super) fn serve_native(
    devices: Vec<Box<dyn PacketDevice>>,
    ports: Arc<[u16]>,
    sources: &mut [Sources],
) {
    for (worker, (sources, device)) in sources.iter_mut().zip(devices).enumerate() {
        let ports = ports.clone();
        let source = PacketSource::new(worker, device, Service::Native { ports });
        sources.packets.push(source);
    }
}

/// Gives every worker a twin of each device of the others, so that all have the same sources in the
/// same order.
pub(crate) fn give_twins(sources: &mut [Sources]) {
    let own: Vec<Vec<PacketSource>> = (sources.iter_mut())
        .map(|sources| std::mem::take(&mut sources.packets))
        .collect();
    for (worker, sources) in sources.iter_mut().enumerate() {
        let others = own.iter().flatten().filter(|source| source.rx != worker);
        sources.packets = others.map(PacketSource::twin).collect();
    }
    // Those of one worker follow one another.
    for (sources, own) in sources.iter_mut().zip(own) {
        let is_before = |source: &PacketSource| own.first().is_some_and(|own| source.rx < own.rx);
        let at = sources
            .packets
            .iter()
            .take_while(|source| is_before(source))
            .count();
        sources.packets.splice(at..at, own);
    }
}

//! DPDK's ports over memory that two processes share (`net_memif`): no NIC is needed.
//!
//! This process begins DPDK once, with three ports. The first is the client of whatever server has
//! been started; the other two are joined, and have the echo and its client.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Error, Result};
use glimmer_transport::transports;
use tempfile::TempDir;

use super::ways::{End, Way};

/// The addresses of the server and its client, and of the echo and its client.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 2);
const ECHO: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 1);
const ECHO_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 2);
/// Huge pages of 2 MiB for either process.
const PAGES_EACH: u64 = 64;

/// DPDK over a shared-memory interface with this number of queues.
///
/// # Errors
///
/// No folder for the sockets can be made, or DPDK refuses a port.
pub fn way(queues: usize) -> Result<Way> {
    let has_pages = free_huge_pages() >= 2 * PAGES_EACH;
    let memory = if has_pages {
        "-m 128"
    } else {
        "--no-huge -m 128"
    };
    let directory = Arc::new(TempDir::new()?);
    let socket = |name: &str| {
        let file = directory.path().join(name);
        format!("id=0,socket={},socket-abstract=no", file.display())
    };
    let (served, echoed) = (socket("server"), socket("echo"));
    let common = format!("{memory} --no-pci");
    // The client's process lives throughout, so its end of the socket listens. Of two connected
    // ports of one process, the one that listens has to be made first.
    let eal = format!(
        "{common} --vdev=net_memif0,role=server,{served} --vdev=net_memif1,role=server,{echoed} \
         --vdev=net_memif2,role=client,{echoed}"
    );
    let name = match has_pages {
        true => "dpdk, memif",
        false => "dpdk, memif without huge pages",
    };
    Ok(Way {
        kind: "dpdk",
        name: name.to_owned(),
        server: format!(
            "dpdk:queues={queues},ip={SERVER}/24 {common} --vdev=net_memif0,role=client,{served}"
        ),
        server_at: SERVER,
        client: port(CLIENT, 0, queues, &eal, &directory)?,
        echo: port(ECHO, 1, queues, &eal, &directory)?,
        echo_client: port(ECHO_CLIENT, 2, queues, &eal, &directory)?,
    })
}

/// One of this process's ports. It is taken now and kept, so that a server that connects later
/// finds it.
fn port(
    ip: Ipv4Addr,
    number: u16,
    queues: usize,
    eal: &str,
    directory: &Arc<TempDir>,
) -> Result<End> {
    let named = transports::named(&format!(
        "dpdk:queues={queues},ip={ip}/24,port={number} {eal}"
    ));
    let transport = named.map_err(Error::msg)?;
    transport.expect_workers(queues);
    drop(transport.open((ip, 0).into())?);
    // The directory of the sockets goes last.
    let port = (transport, directory.clone());
    Ok(End {
        transport: Box::new(move || {
            let (transport, _directory) = &port;
            Ok(transport.clone())
        }),
        at: ip,
        is_server: false,
    })
}

/// Huge pages of the usual size that nobody has.
fn free_huge_pages() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = told
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|pages| pages.trim().parse().ok())
        .unwrap_or(0)
}

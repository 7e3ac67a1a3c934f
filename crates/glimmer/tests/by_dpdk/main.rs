//! A server whose datagrams come by a port that DPDK drives, and clients with ordinary sockets at
//! the other end of a pair of virtual interfaces. The kernel has the same interface for TCP.
#![cfg(feature = "dpdk")]

#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/bpf.rs"]
mod bpf;
#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/link.rs"]
mod link;
#[path = "../past_the_kernel/plain.rs"]
mod plain;
#[path = "../past_the_kernel/served.rs"]
mod served;
#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/server.rs"]
mod server;

use std::net::SocketAddr;

use link::{Driver, Link};
use plain::Plain;
use served::{packets, read_long, store_natively};
use server::{PATIENCE, Server, Text};

/// The program whose command `serve` is the server.
const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer");

/// The addresses of the port. The kernel has others at the same interface.
const ADDRESSES: [&str; 2] = ["10.77.0.3", "fd77::3"];
const NATIVE_PORT: u16 = 11_900;
const OURS: &str = "ip=10.77.0.3/24,ip=fd77::3/64";
const EAL: &str = "--no-huge -m 128 --no-pci --vdev=net_af_packet0,iface=server,qpairs=2";

/// A server at the far end, with this after `dpdk:`.
fn start(link: &Link, dpdk: &str, arguments: &[&str]) -> Result<Server, String> {
    let ips = ADDRESSES.map(|ip| ip.parse().unwrap());
    served::start(link, &format!("dpdk:{dpdk}"), ips, arguments)
}

/// What DPDK keeps in files.
fn files() -> Vec<std::path::PathBuf> {
    let entries = |folder: &str| std::fs::read_dir(folder).into_iter().flatten();
    let all = ["/var/run/dpdk", "/dev/hugepages"]
        .into_iter()
        .flat_map(entries);
    all.map(|entry| entry.unwrap().path()).collect()
}

fn serves(server: &Server) {
    for (number, &at) in server.udp.iter().enumerate() {
        let client = Plain::of(at);
        let stored = client.ask(format!("set a 0 0 1\r\n{number}\r\n").as_bytes());
        assert_eq!(stored, "STORED\r\n");
        let reply = format!("VALUE a 0 1\r\n{number}\r\nEND\r\n");
        assert_eq!(client.ask(b"get a\r\n"), reply);
        assert_eq!(Text::connect(server).say("get a\r\n", &["END"]), reply);
    }
    for ip in ADDRESSES {
        store_natively(SocketAddr::new(ip.parse().unwrap(), NATIVE_PORT), 20);
    }
}

/// Both protocols over both families, as another user, with two workers at two queues. Nothing is
/// left of a server that was killed.
#[test]
fn clients_notice_nothing() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let native = NATIVE_PORT.to_string();
    let arguments = ["--native-port", &native, "-u", "nobody"];
    let before = files();
    let mut server = start(&link, &format!("{OURS} {EAL}"), &arguments).unwrap();
    serves(&server);
    assert_eq!(server.text_figure("stats packets", "transport"), "dpdk");
    assert_eq!(server.text_figure("stats packets", "mode"), "net_af_packet");
    assert_eq!(
        (
            packets(&server, "queues"),
            packets(&server, "kernel_received")
        ),
        (2, 0)
    );
    assert!(packets(&server, "received") >= 48 && packets(&server, "sent") >= 48);
    assert!(packets(&server, "answered:arp") > 0 && packets(&server, "answered:neighbour") > 0);
    let bytes = server.figure("stats memory", "packet_bytes");
    assert!(bytes > 8 << 20, "{bytes}");
    read_long(&server);
    assert!(packets(&server, "bursts:1") > 0);
    server.kill();
    let begin = std::time::Instant::now();
    while files() != before {
        assert!(begin.elapsed() < PATIENCE, "{:?}", files());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let shown = link.beyond(|| link::ip("-details link show server"));
    assert!(
        !shown.contains("PROMISC") && !shown.contains("promiscuity 1"),
        "{shown}"
    );
    let mut server = start(&link, &format!("{OURS} {EAL}"), &arguments).unwrap();
    serves(&server);
    assert!(server.stop().success());
    assert_eq!(files(), before);
}

/// Workers share the port of native clients, and pass on what is for others.
#[test]
fn one_port_serves_native_clients() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let native = NATIVE_PORT.to_string();
    let arguments = [
        "--native-port",
        &native,
        "--native-single-port",
        "--access",
        "crcw",
    ];
    let mut server = start(&link, &format!("{OURS} {EAL}"), &arguments).unwrap();
    serves(&server);
    assert!(server.stop().success());
}

/// What is wrong or missing is said in one line.
#[test]
fn what_is_missing_is_said() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let small = "--no-huge -m 128 --no-pci";
    for (dpdk, arguments, part) in [
        (
            format!("{OURS} {small}"),
            &[][..],
            "DPDK has no port 0: bind a NIC with",
        ),
        (format!("{OURS},port=1 {EAL}"), &[], "DPDK has no port 1"),
        (
            format!("{OURS} {small} --nonsense"),
            &[],
            "the documentation of EAL",
        ),
        (
            format!("{OURS} {small} --vdev=net_af_packet0,iface=other"),
            &[],
            "No such device",
        ),
        (
            format!("{OURS} {small} --vdev=net_none0"),
            &[],
            "failed to parse device",
        ),
        (
            format!("{OURS},mtu=9000 {EAL}"),
            &["-m", "128"],
            "port 0 does not start",
        ),
        (format!("{OURS} {EAL}"), &["-m", "8"], "give at least -m"),
    ] {
        let Err(line) = start(&link, &dpdk, arguments) else {
            panic!("{dpdk} {arguments:?} starts");
        };
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    let reserved = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    if reserved.trim() == "0" {
        let Err(line) = start(&link, &format!("{OURS} --no-pci"), &[]) else {
            panic!("it starts without huge pages");
        };
        assert!(line.contains("vm.nr_hugepages"), "{line}");
    }
}

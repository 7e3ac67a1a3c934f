//! A server that takes datagrams past the kernel's stack, and clients with ordinary sockets at the
//! other end of a pair of virtual interfaces.

#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/bpf.rs"]
mod bpf;
#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/link.rs"]
mod link;
#[path = "plain.rs"]
mod plain;
#[path = "served.rs"]
mod served;
#[allow(dead_code, reason = "the tests of the accelerator need more of it")]
#[path = "../accelerated/server.rs"]
mod server;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use glimmer_client::{Client, transports};
use glimmer_measure::namespaces::wait_for_carrier;
use link::{Driver, Link, has, ip};
use plain::Plain;
use served::{packets, read_long, store_natively, store_over};
use server::{PATIENCE, Server, Text};

/// The program whose command `serve` is the server.
const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer");

/// A server at the far end, past the kernel's stack.
fn start(link: &Link, transport: &str, arguments: &[&str]) -> Result<Server, String> {
    served::start(link, transport, Link::SERVER_ADDRESSES, arguments)
}

/// Memcached's UDP protocol over both families and the native protocol are served past the kernel's
/// stack, TCP and long replies by it.
#[test]
fn clients_notice_nothing() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let Some(mut server) = has(start(&link, "xdp:server", &["--native-port", "-1"])) else {
        return;
    };
    assert_eq!(server.text_figure("stats packets", "mode"), "native");
    for (number, at) in server.udp.iter().enumerate() {
        let client = Plain::of(*at);
        let value = format!("value {number}");
        assert_eq!(
            client.ask(format!("set a 0 0 7\r\n{value}\r\n").as_bytes()),
            "STORED\r\n"
        );
        let reply = format!("VALUE a 0 7\r\n{value}\r\nEND\r\n");
        assert_eq!(client.ask(b"get a\r\n"), reply);
        assert_eq!(Text::connect(&server).say("get a\r\n", &["END"]), reply);
    }
    let (received, sent) = (packets(&server, "received"), packets(&server, "sent"));
    assert!(received >= 4 && sent >= 4, "{received} and {sent}");
    assert_eq!(packets(&server, "kernel_sent"), 0);

    store_natively(server.native(), 50);
    assert!(packets(&server, "received") >= received + 50);
    read_long(&server);

    let bytes = server.figure("stats memory", "packet_bytes");
    assert!(bytes > 8 << 20, "{bytes}");
    let programs = link.programs();
    assert_eq!(programs.len(), 1, "{programs:?}");
    server.kill();
    let begin = Instant::now();
    while !link.programs().is_empty() {
        assert!(begin.elapsed() < PATIENCE, "{:?}", link.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The client goes past the kernel's stack as well, to workers with ports of their own and to those
/// that share one. Long items travel in fragments of the protocol's.
#[test]
fn both_ends_go_past_the_kernels_stack() {
    for arguments in [
        &["--native-port", "-1"][..],
        &["--native-port", "-1", "--native-single-port"],
    ] {
        let Some(link) = Link::make(Driver::SendsToNobody) else {
            return;
        };
        let Some(mut server) = has(start(&link, "xdp:server", arguments)) else {
            return;
        };
        let transport = transports::named("xdp:client").unwrap();
        store_over(transport.clone(), server.native(), 50);
        let figures = transport.figures().unwrap();
        // The kernel finds the way to each port of the server.
        let by_kernel = figures.kernel_sent;
        assert!(by_kernel > 0 && by_kernel * 2 < figures.sent, "{figures:?}");
        assert!(
            figures.sent >= 100 && figures.received >= 100,
            "{figures:?}"
        );
        assert_eq!(packets(&server, "kernel_sent"), 0);
        assert!(packets(&server, "received") >= 100);
        assert!(server.stop().success());
    }
}

/// Meanwhile, requests by another interface are answered, also those of a client that was known by
/// this one.
#[test]
fn an_interface_that_goes_down_is_reported() {
    let Some(link) = Link::make(Driver::SendsToNobody) else {
        return;
    };
    let Some(mut server) = has(start(&link, "xdp:server", &[])) else {
        return;
    };
    let client = Plain::of(server.udp[0]);
    assert_eq!(client.ask(b"get a\r\n"), "END\r\n");
    let said = |what| {
        let lines = server.lines();
        lines.iter().filter(|line| line.contains(what)).count()
    };
    let ask_until = |client: &Plain, what| {
        let begin = Instant::now();
        while said(what) == 0 {
            assert_eq!(client.ask(b"get a\r\n"), "END\r\n");
            assert!(begin.elapsed() < PATIENCE, "{:?}", server.lines());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let (down, up) = ("server is down or has gone", "server is up again");
    link.beyond(|| {
        ip("link set server down");
        let beside = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.udp[0].port());
        ask_until(&Plain::of(beside), down);
        ip("link set server up");
        wait_for_carrier("server").unwrap();
    });
    ask_until(&client, up);
    assert_eq!((said(down), said(up)), (1, 1));
    assert!(server.stop().success());
}

/// Each worker has a socket, to which the kernel gives what is for all hosts.
#[test]
fn requests_to_all_hosts_are_not_executed() {
    let Some(link) = Link::make(Driver::SendsToNobody) else {
        return;
    };
    let Some(mut server) = has(start(&link, "udp", &[])) else {
        return;
    };
    let client = Plain::of(server.udp[0]);
    assert_eq!(client.ask(b"set a 0 0 1\r\n1\r\n"), "STORED\r\n");
    let all = UdpSocket::bind("10.77.0.2:0").unwrap();
    all.set_broadcast(true).unwrap();
    let request = b"\0\x01\0\0\0\x01\0\0incr a 1\r\n";
    for to in ["10.77.0.255", "255.255.255.255", "224.0.0.1"] {
        let to = SocketAddr::new(to.parse().unwrap(), server.udp[0].port());
        let sent = all.send_to(request, to);
        // A link may have no way to groups of hosts.
        assert!(sent.is_ok() || to.ip().is_multicast(), "{to}: {sent:?}");
    }
    // Each worker has answered what came later.
    for _ in 0..16 {
        assert_eq!(Plain::of(server.udp[0]).ask(b"get none\r\n"), "END\r\n");
    }
    assert_eq!(client.ask(b"get a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    assert!(server.stop().success());
}

/// Each of two workers has a queue. What clients send to a worker's port reaches it from either
/// queue, and what would have it arrive at the worker's own is named. A port that workers share is
/// served at both queues.
#[test]
fn two_workers_have_two_queues() {
    let Some(link) = Link::make(Driver::TwoQueues) else {
        return;
    };
    let arguments = ["--native-port", "-1", "--dispatch", "keyhash"];
    let Some(mut server) = has(start(&link, "xdp:server", &arguments)) else {
        return;
    };
    assert_eq!(packets(&server, "queues"), 2);
    assert_eq!(server.text_figure("stats packets", "steering"), "none");
    let transport = transports::named("xdp:client").unwrap();
    let begin = Instant::now();
    // The kernel chooses a queue for the first datagrams of each, and the others follow them.
    let (mut elsewhere, mut received) = (0, 0);
    while elsewhere == 0 || elsewhere == received {
        store_over(transport.clone(), server.native(), 20);
        elsewhere = packets(&server, "elsewhere");
        received = packets(&server, "received");
        assert!(begin.elapsed() < PATIENCE, "one queue gets everything");
    }
    assert_eq!(transport.figures().unwrap().queues, 2);
    let steering = server.text_figure("stats packets", "steering");
    assert!(steering.contains("ethtool -N server"), "{steering}");
    let before = packets(&server, "received");
    for _ in 0..16 {
        let client = Plain::of(server.udp[0]);
        assert_eq!(client.ask(b"get none\r\n"), "END\r\n");
    }
    assert!(packets(&server, "received") >= before + 16);
    assert_eq!(packets(&server, "kernel_received"), 0);
    assert!(server.stop().success());
}

/// Nobody is woken when nothing arrives, and another user goes on.
#[test]
fn an_idle_server_sleeps() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let arguments = ["--native-port", "-1", "-u", "nobody"];
    let Some(mut server) = has(start(&link, "xdp:server:1:generic", &arguments)) else {
        return;
    };
    assert_eq!(server.text_figure("stats packets", "mode"), "generic");
    let client = Plain::of(server.udp[0]);
    assert_eq!(client.ask(b"set a 0 0 1\r\n1\r\n"), "STORED\r\n");
    sleeps(&server);
    assert!(packets(&server, "received") > 0);
    assert!(server.stop().success());
    assert!(link.programs().is_empty());
}

/// How often the workers were woken.
fn wakeups(server: &Server) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let of = |task: std::path::PathBuf| -> u64 {
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        let count = line
            .and_then(|line| line.split_whitespace().nth(1))
            .unwrap();
        if name.starts_with("worker") {
            count.parse().unwrap()
        } else {
            0
        }
    };
    tasks.map(|task| of(task.unwrap().path())).sum()
}

/// A worker that polls for a while is awake when the next request comes, and sleeps when none does.
#[test]
fn a_worker_polls_for_a_while_before_it_sleeps() {
    for (transport, time_us) in [("xdp:server", "200000"), ("udp", "200000")] {
        let Some(link) = Link::make(Driver::Xdp) else {
            return;
        };
        let arguments = ["-t", "1", "--busy-poll", time_us];
        let Some(mut server) = has(start(&link, transport, &arguments)) else {
            return;
        };
        let shown = server.text_figure("stats settings", "glimmer_busy_poll");
        assert_eq!(shown, time_us);
        let client = Plain::of(server.udp[0]);
        assert_eq!(client.ask(b"set a 0 0 1\r\n1\r\n"), "STORED\r\n");
        let before = wakeups(&server);
        for _ in 0..200 {
            assert_eq!(client.ask(b"get a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
        }
        let more = wakeups(&server) - before;
        assert!(more < 100, "{transport}: it was woken {more} times");
        sleeps(&server);
        assert!(server.stop().success());
    }
}

/// Waits until no worker is woken for a second.
fn sleeps(server: &Server) {
    let begin = Instant::now();
    while wakeups(server) != (std::thread::sleep(Duration::from_secs(1)), wakeups(server)).1 {
        assert!(begin.elapsed() < PATIENCE, "it never sleeps for a second");
    }
}

/// The accelerator and the redirection are one program.
#[test]
fn hot_keys_are_answered_by_the_same_program() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let body = ["--accelerate", "xdp:server", "--native-port", "-1"];
    let Some(mut server) = has(start(&link, "xdp:server", &body)) else {
        return;
    };
    // The second one, at tcx, answers what is too long for the first.
    assert_eq!(link.programs().len(), 2);
    let hits = |server: &Server| server.figure("stats accelerator", "hits");
    for (number, at) in server.udp.clone().into_iter().enumerate() {
        let client = Plain::of(at);
        let value = number.to_string();
        assert_eq!(
            client.ask(format!("set a 0 0 1\r\n{value}\r\n").as_bytes()),
            "STORED\r\n"
        );
        let (before, begin) = (hits(&server), Instant::now());
        while hits(&server) < before + 10 {
            let reply = client.ask(b"get a\r\n");
            assert_eq!(reply, format!("VALUE a 0 1\r\n{value}\r\nEND\r\n"));
            assert!(begin.elapsed() < PATIENCE, "{}", hits(&server));
        }
        let (before, received) = (hits(&server), packets(&server, "received"));
        assert_eq!(client.ask(b"get other\r\n"), "END\r\n");
        // It may have been asked more than once.
        assert_eq!(hits(&server), before);
        assert!(packets(&server, "received") > received);
    }
    let mut client = Client::connect(server.native()).unwrap();
    client.put(b"a", b"native", 0, 0).unwrap();
    let reply = Plain::of(server.udp[0]).ask(b"get a\r\n");
    assert_eq!(reply, "VALUE a 0 6\r\nnative\r\nEND\r\n");
    server.kill();
    let begin = Instant::now();
    while !link.programs().is_empty() {
        assert!(begin.elapsed() < PATIENCE, "{:?}", link.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What is missing is said in one line, and nothing stays at the interface.
#[test]
fn what_is_missing_is_said() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let Some(mut first) = has(start(&link, "xdp:server", &["-l", "10.77.0.1"])) else {
        return;
    };
    for (transport, arguments, part) in [
        (
            "xdp:other",
            &[][..],
            "there is no such interface; `ip link`",
        ),
        ("xdp:server:9", &[], "give at most xdp:server:"),
        (
            "xdp:server",
            &["-p", "11300", "-U", "11300"],
            "another XDP program",
        ),
        (
            "xdp:server",
            &["-l", Link::OTHER_ADDRESS],
            "give one of its addresses with -l",
        ),
        (
            "xdp:server",
            &["--accelerate", "tcx:server"],
            "give --accelerate xdp:IF",
        ),
        ("xdp:server", &["-m", "8"], "give at least -m"),
    ] {
        if part.contains("-l") {
            first.stop();
        }
        let Err(line) = start(&link, transport, arguments) else {
            panic!("{transport} {arguments:?} starts");
        };
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    link.set_vlan_stripping(true);
    let line = start(&link, "xdp:server", &[])
        .err()
        .expect("it does not start");
    assert!(line.contains("ethtool -K server rxvlan off"), "{line}");
    assert!(link.programs().is_empty());
}

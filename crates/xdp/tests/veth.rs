//! Real packets: the program is attached to one of a pair of interfaces, and sockets ask it.
#![cfg(target_os = "linux")]

mod support;

use aya::programs::SchedClassifier;
use aya::programs::tc::TcAttachType;
use glimmer_base::Seed;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_hotset::layout::Tally;
use glimmer_hotset::{Guard, Memory};
use glimmer_xdp::{Attached, Error, Mode, Settings, Sources, attach};
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use support::frames::{PORT, binary};
use support::veth::{CLIENT_INTERFACE, SERVER_INTERFACE, Veth, address, enter, index};
use support::{is_left_out, item, sources};

const MODES: [Mode; 3] = [Mode::Driver, Mode::Generic, Mode::Tcx];

fn settings(mode: Mode) -> Settings {
    Settings {
        ifindex: index(SERVER_INTERFACE),
        mode,
        addresses: vec![address(true, 2), address(false, 2)],
        sources: Sources::Networks(sources()),
        ..support::settings(mode)
    }
}

/// Attaches in this thread's namespace. `None` where programs cannot be loaded.
fn attached(mode: Mode) -> Option<Attached> {
    match attach(&settings(mode)) {
        Ok(attached) => Some(attached),
        Err(error) if is_left_out(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// On a veth pair, the other interface takes packets that a program sends only if it has a program,
/// too. This one passes everything: its hardware address is nobody's.
fn passing() -> Attached {
    let passing = Settings {
        ifindex: index(CLIENT_INTERFACE),
        mac: [0; 6],
        ..settings(Mode::Driver)
    };
    attach(&passing).unwrap()
}

/// A server that sends every datagram back as it is.
fn serve() {
    for is_v4 in [true, false] {
        let socket = UdpSocket::bind((address(is_v4, 2), PORT)).unwrap();
        std::thread::spawn(move || {
            let mut datagram = [0; 4096];
            while let Ok((bytes, from)) = socket.recv_from(&mut datagram) {
                let _ = socket.send_to(&datagram[..bytes], from);
            }
        });
    }
}

struct Client(UdpSocket);

impl Client {
    fn new(is_v4: bool) -> Client {
        let socket = UdpSocket::bind((address(is_v4, 1), 0)).unwrap();
        socket.connect((address(is_v4, 2), PORT)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        Client(socket)
    }

    /// The reply to a request. A datagram may be lost while the hosts look for one another.
    fn ask(&self, request: &[u8]) -> Vec<u8> {
        let datagram = [&b"\x12\x34\0\0\0\x01\0\0"[..], request].concat();
        let mut reply = [0; 4096];
        for _ in 0..10 {
            self.0.send(&datagram).unwrap();
            if let Ok(bytes) = self.0.recv(&mut reply) {
                assert_eq!(reply[..8], datagram[..8]);
                return reply[8..bytes].to_vec();
            }
        }
        panic!("no reply to {request:?}");
    }
}

/// What the program has counted, by names.
fn tallies(memory: &Memory) -> Vec<(&'static str, u64)> {
    let rows = || (0..memory.readers()).map(|row| memory.tallies(row));
    let counted = |tally: Tally| rows().map(|row| row[tally as usize].load(Relaxed)).sum();
    let all = Tally::all()
        .iter()
        .map(|&tally| (tally.name(), counted(tally)));
    all.filter(|(_, count)| *count > 0).collect()
}

fn hits(memory: &Memory) -> u64 {
    let hits = Tally::all()[..=Tally::HitBinary as usize].iter();
    let names: Vec<_> = hits.map(|tally| tally.name()).collect();
    let counted = tallies(memory).into_iter();
    counted
        .filter(|(name, _)| names.contains(name))
        .map(|(_, count)| count)
        .sum()
}

fn too_long(memory: &Memory) -> u64 {
    let name = Tally::TooLong.name();
    let counted = tallies(memory).into_iter().find(|(it, _)| *it == name);
    counted.map_or(0, |(_, count)| count)
}

/// Asks for values of many lengths. All are answered by the program, with the right bytes; those
/// that are longer than `always` may be left to the server, and are counted then.
fn all_is_right(veth: &Veth, memory: &Arc<Memory>, always: usize) {
    let guard = Guard::new(memory.clone());
    let before = hits(memory);
    let mut answered = 0;
    veth.in_client(|| {
        for is_v4 in [true, false] {
            let client = Client::new(is_v4);
            for value_bytes in (1..1350).step_by(97) {
                let value: Vec<u8> = (0..value_bytes).map(|place| (place * 7) as u8).collect();
                let keyhash = Seed(7).keyhash(b"key");
                let item = item(b"key", &value);
                guard.fill(guard.epoch(), keyhash, &item, u32::MAX, |_| 0);
                let head = format!("VALUE key 3735928559 {value_bytes}\r\n");
                let text = [head.as_bytes(), &value, b"\r\nEND\r\n"].concat();
                for request in [b"get key\r\n".to_vec(), binary(0, b"key", [1; 4])] {
                    let passed = too_long(memory);
                    let reply = client.ask(&request);
                    if reply == request && value_bytes > always {
                        let counted = too_long(memory);
                        assert!(counted > passed, "{value_bytes}, {:?}", tallies(memory));
                        continue;
                    }
                    answered += 1;
                    let is_right = reply == text || reply.get(28..) == Some(&value[..]);
                    assert!(is_right, "{value_bytes}, {reply:?}, {:?}", tallies(memory));
                }
            }
            // A miss goes to the server, and so does what the program does not understand.
            for passed in [&b"get other\r\n"[..], b"set key 0 0 1\r\nv\r\n"] {
                assert_eq!(client.ask(passed), passed);
            }
            memory.control().fail_rechecks(true);
            assert_eq!(client.ask(b"get key\r\n"), b"get key\r\n");
            memory.control().fail_rechecks(false);
        }
    });
    let counted = hits(memory) - before;
    assert!(counted >= answered, "{counted} of {answered}");
    println!("{answered} answered");
}

#[test]
fn real_packets_are_answered() {
    for mode in MODES {
        for compute_checksums in [true, false] {
            // With a buffer of the kernel, a request without a checksum goes to the server.
            if !compute_checksums && mode != Mode::Driver {
                continue;
            }
            let Some(veth) = Veth::new() else { return };
            if compute_checksums {
                veth.compute_checksums();
            }
            veth.in_server(serve);
            let Some(attached) = veth.in_server(|| attached(mode)) else {
                return;
            };
            let _passing = veth.in_client(passing);
            assert_eq!(attached.mode(), mode);
            // After XDP in its receive path, the kernel may not know how long the header of
            // Ethernet is. Then tcx cannot answer what does not fit.
            let always = if mode == Mode::Generic {
                150
            } else {
                usize::MAX
            };
            all_is_right(&veth, &attached.memory(), always);
            println!("{mode:?}: right");
        }
    }
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let Some(veth) = Veth::new() else { return };
    veth.in_server(|| {
        let Some(first) = attached(Mode::Driver) else {
            return;
        };
        for mode in [Mode::Driver, Mode::Generic] {
            let second = attach(&settings(mode)).map(|_| ());
            assert!(matches!(second, Err(Error::OtherProgram)), "{second:?}");
        }
        // tcx stands beside it.
        drop(attach(&settings(Mode::Tcx)).unwrap());
        drop(first);
        let nowhere = Settings {
            ifindex: 9999,
            ..settings(Mode::Tcx)
        };
        let refused = attach(&nowhere).map(|_| ());
        assert!(matches!(refused, Err(Error::NoInterface)), "{refused:?}");
        attach(&settings(Mode::Generic)).unwrap();
        let loopback = Settings {
            ifindex: index("lo"),
            ..settings(Mode::Driver)
        };
        let refused = attach(&loopback).map(|_| ());
        assert!(
            matches!(refused, Err(Error::NoDriverSupport)),
            "{refused:?}"
        );
    });
}

#[test]
fn an_interface_that_has_gone_is_noticed() {
    for mode in MODES {
        let Some(veth) = Veth::new() else { return };
        let Some(attached) = veth.in_server(|| attached(mode)) else {
            return;
        };
        assert!(attached.has_interface(), "{mode:?}");
        veth.remove();
        assert!(!attached.has_interface(), "{mode:?}");
    }
}

/// The body of a process that is killed: it attaches the program and waits.
#[test]
#[ignore = "the process that another test kills"]
fn holder() {
    let Ok(namespace) = std::env::var("GLIMMER_TEST_NAMESPACE") else {
        return;
    };
    enter(&namespace);
    let mode = MODES[std::env::var("GLIMMER_TEST_MODE")
        .unwrap()
        .parse::<usize>()
        .unwrap()];
    let _attached = attach(&settings(mode)).unwrap();
    println!("holding");
    std::thread::sleep(Duration::from_secs(600));
}

/// A killed process leaves nothing attached.
#[test]
fn nothing_is_left_of_a_killed_process() {
    let Some(veth) = Veth::new() else { return };
    if veth.in_server(|| attached(Mode::Driver)).is_none() {
        return;
    }
    for (place, mode) in MODES.into_iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "holder", "--nocapture"])
            .env("GLIMMER_TEST_NAMESPACE", &veth.server)
            .env("GLIMMER_TEST_MODE", place.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let holding = lines
            .map_while(Result::ok)
            .any(|line| line.contains("holding"));
        assert!(holding, "the process has not attached the program");
        assert!(veth.in_server(|| at_tcx() == 1 && (mode == Mode::Tcx || is_taken())));
        child.kill().unwrap();
        child.wait().unwrap();
        // The kernel takes links away a moment later.
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            veth.in_server(|| at_tcx() == 0 && !is_taken())
        });
        assert!(gone, "{mode:?}: something is left");
    }
}

fn is_taken() -> bool {
    matches!(attach(&settings(Mode::Driver)), Err(Error::OtherProgram))
}

/// Programs at the tcx hook of the server's interface.
fn at_tcx() -> usize {
    let (_, programs) =
        SchedClassifier::query_tcx(SERVER_INTERFACE, TcAttachType::Ingress).unwrap();
    programs.len()
}

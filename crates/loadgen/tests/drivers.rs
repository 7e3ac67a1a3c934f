//! Every protocol over every transport against memcached, if it is installed.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Arrivals, Idle, Pace, Pass, Plan, Requests, WarmUp},
    workload::{Mix, Sizes, Ttl, Workload, trace::Trace},
};
use glimmer_measure::ports::free_ports;

const KEYS: u64 = 2000;

/// A memcached process that is stopped when the handle is dropped.
struct Memcached {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Memcached {
    fn start(unix: bool) -> Option<Memcached> {
        let directory = tempfile::tempdir().unwrap();
        let port = free_ports(1).unwrap();
        let mut command = Command::new("memcached");
        command
            .args(["-u", "root", "-m", "64", "-t", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let socket = directory.path().join("socket");
        match unix {
            true => command.arg("-s").arg(&socket),
            false => command.args([
                "-l",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-U",
                &port.to_string(),
            ]),
        };
        let Ok(child) = command.spawn() else {
            eprintln!("SKIPPED: memcached is missing: apt-get install memcached");
            return None;
        };
        let memcached = Memcached {
            child,
            port,
            directory,
        };
        let begin = Instant::now();
        let accepts = || match unix {
            true => UnixStream::connect(&socket).is_ok(),
            false => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
        };
        while !accepts() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "memcached accepts no connections"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(memcached)
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }
}

fn workload(mix: Mix) -> Workload {
    Workload {
        keys: KEYS,
        key_bytes: 23,
        sizes: Sizes::Uniform(0, 300),
        mix,
        ..Workload::default()
    }
}

fn plan(requests: Requests, pace: Pace) -> Plan {
    Plan {
        threads: 2,
        connections: 5,
        warm_up: WarmUp::Fixed(Duration::from_millis(20)),
        measured: Some(Duration::from_millis(150)),
        ..Plan::new(requests, pace)
    }
}

fn drive(address: Address, dialect: Dialect) {
    let (target, loses) = (Target::new(address, dialect), 0.02);
    let udp = matches!(target.address, Address::Udp(_) | Address::UdpTrains(_));
    let what = format!("{} over {}", dialect.name(), target.address);
    let all = workload(Mix::reads(1.0));
    let written = load::pass(&target, &all, Pass::Write, 0..KEYS, &mut |_| {}).expect(&what);
    assert_eq!(
        (written.writes + written.lost, written.refused),
        (KEYS, 0),
        "{what}"
    );
    let read = load::pass(&target, &all, Pass::Read, 0..KEYS, &mut |_| {}).expect(&what);
    let lost = written.lost + read.lost + read.misses;
    assert_eq!(
        read.hits + read.misses + read.lost,
        KEYS,
        "{what}: {read:?}"
    );
    assert!(
        if udp {
            lost as f64 <= loses * KEYS as f64
        } else {
            lost == 0
        },
        "{what}: {read:?}"
    );

    let mix = Mix {
        set: 0.1,
        read_modify_write: 0.05,
        delete: 0.1,
        set_on_miss: true,
        ttl: Ttl::Uniform(60, 600),
        ..Mix::reads(0.75).keys_per_get(5)
    };
    let requests = Requests::Drawn(workload(mix));
    for pace in [
        Pace::Closed { in_flight: 4 },
        Pace::Open {
            arrivals: Arrivals::Poisson(3000.0),
            burst: 1,
            idle: Idle::Sleep,
        },
    ] {
        // On a machine that gives the client no CPU time, the measurement is empty and is repeated.
        let measure = |_| {
            let outcome = load::run(&target, &plan(requests.clone(), pace), None, &mut |_| {});
            let outcome = outcome.expect(&what);
            (outcome.tally.writes > 0 && outcome.tally.deletes > 0).then_some(outcome)
        };
        let outcome = (0..50).find_map(measure).expect(&what);
        let tally = outcome.tally;
        assert!(
            tally.hits > 0 && tally.writes > 0 && tally.deletes > 0,
            "{what}: {tally:?}"
        );
        assert_eq!(tally.refused, 0, "{what}");
        assert!(udp || tally.lost == 0, "{what}: {tally:?}");
        assert!(
            !outcome.reads.is_empty() && !outcome.writes.is_empty(),
            "{what}"
        );
    }
}

#[test]
fn tcp() {
    let Some(memcached) = Memcached::start(false) else {
        return;
    };
    for dialect in [Dialect::Text, Dialect::Meta, Dialect::Binary] {
        drive(Address::Tcp(memcached.address()), dialect);
    }
}

#[test]
fn udp() {
    let Some(memcached) = Memcached::start(false) else {
        return;
    };
    for dialect in [Dialect::Text, Dialect::Meta, Dialect::Binary] {
        drive(Address::Udp(memcached.address()), dialect);
        drive(Address::UdpTrains(memcached.address()), dialect);
    }
}

#[test]
fn unix_sockets() {
    let Some(memcached) = Memcached::start(true) else {
        return;
    };
    for dialect in [Dialect::Text, Dialect::Meta, Dialect::Binary] {
        drive(Address::Unix(memcached.socket()), dialect);
    }
}

#[test]
fn values_larger_than_any_buffer() {
    let Some(memcached) = Memcached::start(false) else {
        return;
    };
    let target = Target::text(memcached.address());
    let large = Workload {
        keys: 20,
        sizes: Sizes::Fixed(900_000),
        ..workload(Mix::reads(0.5))
    };
    let written = load::pass(&target, &large, Pass::Write, 0..20, &mut |_| {}).unwrap();
    assert_eq!(written.writes, 20);
    let read = load::pass(&target, &large, Pass::Read, 0..20, &mut |_| {}).unwrap();
    assert_eq!(read.hits, 20);
}

#[test]
fn a_trace_is_replayed_to_its_end() {
    let Some(memcached) = Memcached::start(false) else {
        return;
    };
    let file = memcached.directory.path().join("cluster.csv");
    let line = |turn: u32| {
        format!(
            "{},{},20,{},1,{},60\n",
            turn / 300,
            turn % 50,
            10 + turn % 50,
            if turn.is_multiple_of(3) { "set" } else { "get" }
        )
    };
    std::fs::write(&file, (0..900).map(line).collect::<String>()).unwrap();
    let trace = Requests::Recorded(Trace::new(file, None).unwrap());
    let by_its_clock = Pace::Open {
        arrivals: Arrivals::Recorded(10.0),
        burst: 1,
        idle: Idle::Sleep,
    };
    for pace in [Pace::Closed { in_flight: 2 }, by_its_clock] {
        let plan = Plan {
            warm_up: WarmUp::Fixed(Duration::ZERO),
            measured: None,
            ..plan(trace.clone(), pace)
        };
        let tally = load::run(&Target::text(memcached.address()), &plan, None, &mut |_| {})
            .unwrap()
            .tally;
        assert_eq!((tally.operations(), tally.writes), (900, 300), "{tally:?}");
    }
}

#[test]
fn a_value_of_somebody_else_fails_the_run() {
    let Some(memcached) = Memcached::start(false) else {
        return;
    };
    let target = Target::text(memcached.address());
    let all = workload(Mix::reads(1.0));
    load::pass(&target, &all, Pass::Write, 0..KEYS, &mut |_| {}).unwrap();
    let mut key = Vec::new();
    all.key(KEYS / 2).write(&mut key);
    let mut stranger = TcpStream::connect(memcached.address()).unwrap();
    use std::io::{Read, Write};
    let set = [b"set ", &key[..], b" 0 0 5\r\nhello\r\n"].concat();
    stranger.write_all(&set).unwrap();
    assert!(stranger.read(&mut [0; 64]).unwrap() > 0);
    let error = load::pass(&target, &all, Pass::Read, 0..KEYS, &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("expected the reply to Key"), "{error}");
}

//! `glimmer top` shows what a real server does: everything for Glimmer, and what memcached's
//! statistics contain.

#[path = "../../../tests/support/server_program.rs"]
mod server_program;

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use glimmer_measure::ports::free_ports;

const PATIENCE: Duration = Duration::from_secs(20);
const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer-top");

/// The server's executable.
fn server() -> &'static str {
    server_program::server_beside(PROGRAM)
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with 64 MiB at this address, and waits until it is there.
fn start(program: &str, arguments: &str, address: &str) -> Server {
    let (ip, port) = address.split_once(':').unwrap();
    let all = format!("{arguments} -l {ip} -p {port} -m 64");
    spawn(program, &all, || TcpStream::connect(address).is_ok())
}

/// Starts a server, and waits until it is there.
fn spawn(program: &str, arguments: &str, is_there: impl Fn() -> bool) -> Server {
    let mut command = Command::new(program);
    let child = command
        .args(arguments.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let server = Server(child.spawn().unwrap());
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < PATIENCE, "{program} does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// An address at which no process listens.
fn free_address() -> String {
    format!("127.0.0.1:{}", free_ports(1).unwrap())
}

fn top(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Stores one key, and reads it twice as often as a missing one.
fn ask(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"set a 0 0 1\r\nx\r\nget a\r\nget a\r\nget b\r\n")
        .unwrap();
    let mut ends = 0;
    for line in BufReader::new(&stream).lines() {
        ends += usize::from(line.unwrap() == "END");
        if ends == 3 {
            break;
        }
    }
}

/// The value after a name in the report.
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in\n{report}"))
        .trim()
}

#[test]
fn ours_is_shown_in_full() {
    let address = free_address();
    let _server = start(server(), "serve -t 2", &address);
    ask(&address);
    let (fine, report) = top(&[&address, "--once", "--interval", "0.3"]);
    assert!(fine, "{report}");
    assert!(
        value(&report, "hit ratio").contains("66.7% since"),
        "{report}"
    );
    assert_eq!(value(&report, "items"), "1");
    assert!(
        value(&report, "memory").ends_with(" MiB of 64 MiB"),
        "{report}"
    );
    assert!(value(&report, "worker 0").contains("% busy"), "{report}");
    assert!(
        value(&report, "worker 1").contains("connections"),
        "{report}"
    );
    assert!(value(&report, "round trip").starts_with("p50 "), "{report}");
    assert!(
        value(&report, "cores busy").parse::<f64>().is_ok(),
        "{report}"
    );
    assert!(
        report.lines().next().unwrap().contains("glimmer crcw"),
        "{report}"
    );

    let (fine, lines) = top(&[&address, "--count", "2", "--interval", "0.1"]);
    assert!(fine, "{lines}");
    let rows: Vec<_> = lines.lines().collect();
    assert!(rows.len() == 3 && rows[0].contains("req/s"), "{lines}");
    assert!(rows[2].split_whitespace().count() >= 12, "{lines}");
}

#[test]
fn a_unix_socket_will_do() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let socket = socket.to_str().unwrap();
    let arguments = format!("serve -s {socket} -t 1");
    let _server = spawn(server(), &arguments, || UnixStream::connect(socket).is_ok());
    let (fine, report) = top(&[&format!("unix:{socket}"), "--once", "--interval", "0.2"]);
    assert!(fine, "{report}");
    assert_eq!(value(&report, "items"), "0");
    assert!(value(&report, "worker 0").contains("% busy"), "{report}");
}

#[test]
fn memcached_is_shown_as_far_as_it_tells() {
    if Command::new("memcached").arg("-V").output().is_err() {
        eprintln!("SKIPPED: memcached is missing: apt-get install memcached");
        return;
    }
    let address = free_address();
    let _server = start("memcached", "-U 0 -u root", &address);
    ask(&address);
    let (fine, report) = top(&[&address, "--once", "--interval", "0.2"]);
    assert!(fine, "{report}");
    assert!(
        value(&report, "hit ratio").contains("66.7% since"),
        "{report}"
    );
    assert_eq!(value(&report, "items"), "1");
    assert!(
        !report.contains("worker") && !report.contains("hot key"),
        "{report}"
    );
}

#[test]
fn a_server_that_went_away_is_watched_again_when_it_is_back() {
    let address = free_address();
    let running = start(server(), "serve -t 1", &address);
    let top = Command::new(PROGRAM)
        .args([&address, "--plain", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut top = Server(top.unwrap());
    let mut rows = BufReader::new(top.0.stdout.take().unwrap()).lines();
    let mut complaints = BufReader::new(top.0.stderr.take().unwrap()).lines();
    let mut row = || rows.next().expect("top goes on").unwrap();
    let mut complaint = || complaints.next().expect("top goes on").unwrap();
    assert!(row().contains("req/s"));
    row();
    drop(running);
    let gone = complaint();
    assert!(gone.ends_with("; trying again"), "{gone}");
    let _server = start(server(), "serve -t 1", &address);
    let back = complaint();
    assert!(
        back.contains(&address) && back.contains("answers again"),
        "{back}"
    );
    // Lines that were printed before the server stopped are among them.
    for _ in 0..20 {
        row();
    }
}

/// A dummy server that knows only these answers to `stats` with an argument.
fn answer(listener: &TcpListener, answers: &'static [(&'static str, &'static str)]) {
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        // Ends with the test, or when the client disconnects.
        std::thread::spawn(move || {
            for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                let known = answers.iter().find(|(command, _)| *command == line);
                let reply = known.map_or("ERROR\r\n", |(_, reply)| reply);
                if (&stream).write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        });
    }
}

#[test]
fn hot_keys_are_shown_when_the_server_samples_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers = &[
        ("stats", "STAT pid 1\r\nSTAT curr_items 3\r\nEND\r\n"),
        (
            "stats hotkeys",
            "STAT user:1 4711/s 100 B\r\nSTAT user:2 99/s 2048 B\r\nEND\r\n",
        ),
        ("version", "VERSION 1\r\n"),
    ];
    std::thread::spawn(move || answer(&listener, answers));
    let (fine, report) = top(&[&address, "--once", "--interval", "0.1"]);
    assert!(fine, "{report}");
    assert_eq!(value(&report, "items"), "3");
    let keys: Vec<_> = report
        .lines()
        .filter(|line| line.contains("hot key"))
        .collect();
    assert!(
        keys.len() == 2 && keys[0].ends_with("user:1 4.7k reads/s, 100 B"),
        "{report}"
    );
}

#[test]
fn what_is_no_memcached_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || answer(&listener, &[("stats", "-ERR unknown command\r\n")]));
    let (fine, complaint) = top(&[&address, "--once"]);
    assert!(
        !fine && complaint.contains("not what a memcached answers"),
        "{complaint}"
    );
}

#[test]
fn what_cannot_be_watched_is_said() {
    let address = free_address();
    let (fine, complaint) = top(&[&address, "--once"]);
    assert!(
        !fine && complaint.contains("cannot connect to"),
        "{complaint}"
    );
    let (fine, complaint) = top(&["unix:/nowhere/at.all", "--once"]);
    assert!(
        !fine && complaint.contains("cannot connect to unix:"),
        "{complaint}"
    );
}

#[test]
fn an_accelerated_server_is_shown() {
    let address = free_address();
    let port = address.rsplit(':').next().unwrap();
    let model = format!("serve -U {port} -t 1 --accelerate model --accelerate-slots 256");
    let _server = start(server(), &model, &address);
    ask(&address);
    let is_over = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(&address).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                socket.send(b"\0\0\0\0\0\x01\0\0get a\r\n").unwrap();
                socket.recv(&mut [0; 64]).unwrap();
            }
        });
        let begin = Instant::now();
        let report = loop {
            let (fine, report) = top(&[&address, "--once", "--interval", "0.5"]);
            let is_hot = value(&report, "live slots") == "1 of 256" && report.contains(" 1 B");
            if !fine || is_hot || begin.elapsed() > PATIENCE {
                break report;
            }
        };
        is_over.store(true, Ordering::Relaxed);
        report
    });
    assert_eq!(value(&report, "accelerator"), "model", "{report}");
    assert_eq!(value(&report, "live slots"), "1 of 256", "{report}");
    assert_eq!(value(&report, "paused"), "no", "{report}");
    let share = value(&report, "share").strip_suffix("% of reads");
    let share: f64 = share.unwrap().parse().unwrap();
    assert!(share > 50.0, "{report}");
    let hits = value(&report, "hits");
    assert!(
        hits.contains("/s get") && !hits.starts_with("0/s"),
        "{report}"
    );
}

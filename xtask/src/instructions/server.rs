//! Instructions of the whole server in user space, for requests over TCP.

use super::{Case, callgrind};
use crate::process::{program, run, target_dir};
use anyhow::{Context, bail};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections that send at the same time.
const CONNECTIONS: usize = 8;
const KEYS: usize = 1_000;
const VALUE_BYTES: usize = 64;
/// Rounds of requests whose way through the files is followed.
const WALKED_ROUNDS: usize = 100;
/// For how long the server may take to start, and to reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// What each connection sends at once.
struct Scenario {
    name: &'static str,
    requests: usize,
    /// Keys of a request.
    keys: usize,
    is_set: bool,
    /// How often each connection sends, in the two runs.
    rounds: [usize; 2],
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "get, 32 at once",
        requests: 32,
        keys: 1,
        is_set: false,
        rounds: [20, 120],
    },
    Scenario {
        name: "set, 32 at once",
        requests: 32,
        keys: 1,
        is_set: true,
        rounds: [20, 120],
    },
    Scenario {
        name: "get, one at a time",
        requests: 1,
        keys: 1,
        is_set: false,
        rounds: [50, 450],
    },
    Scenario {
        name: "a key of 50 in a get",
        requests: 1,
        keys: 50,
        is_set: false,
        rounds: [20, 120],
    },
];

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    let case = |scenario: &Scenario| Case {
        row: scenario.name.to_owned(),
        column: "server".to_owned(),
    };
    SCENARIOS.iter().map(case).collect()
}

/// Builds the server.
pub fn build() -> anyhow::Result<PathBuf> {
    callgrind::build("glimmer")
}

/// What this server, which is built without TLS, says of `-Z`. No other stage builds one.
const NO_TLS: &str = "glimmer: -Z: This server is not built with TLS support. Build it with the \
                      default features, or leave -Z out\n";

/// Fails unless the server refuses TLS in the right words, and with memcached's status.
pub fn refuses_tls(server: &Path) -> anyhow::Result<()> {
    let output = program(server, &["serve", "-Z"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(64) || said != NO_TLS {
        bail!("without TLS, -Z is answered with {}: {said}", output.status);
    }
    Ok(())
}

/// What the walk of a request follows: many of one kind.
pub fn send_many(port: u16, is_set: bool) -> anyhow::Result<()> {
    let nth = usize::from(is_set);
    send_all(port, "", &SCENARIOS[nth], WALKED_ROUNDS)
}

/// Instructions per key. The difference between two runs with different numbers of requests
/// excludes the cost of starting, storing the items and stopping.
pub fn per_request(server: &Path, case: &Case) -> anyhow::Result<f64> {
    per_request_of(server, &case.row, &Connection::default())
}

/// What a server is told of its clients, and what these say first.
#[derive(Clone, Copy, Default)]
pub struct Connection<'a> {
    /// More options of the server.
    pub options: &'a [&'a str],
    /// The name of a user and the password; empty for none.
    pub login: &'a str,
}

/// The same, of connections of this kind.
pub fn per_request_of(
    server: &Path,
    scenario: &str,
    connection: &Connection<'_>,
) -> anyhow::Result<f64> {
    let scenario = SCENARIOS.iter().find(|it| it.name == scenario);
    let scenario = scenario.context("no such scenario")?;
    let collected = |rounds| {
        let command = callgrind::command(&[], server);
        run_server(command, connection.options, |at| {
            send_all(at.tcp, connection.login, scenario, rounds)
        })
    };
    let [few, many] = scenario.rounds;
    let difference = collected(many)? - collected(few)?;
    let keys = (many - few) * CONNECTIONS * scenario.requests * scenario.keys;
    Ok(difference as f64 / keys as f64)
}

/// Where a server listens.
pub struct Ports {
    pub tcp: u16,
    pub udp: Option<u16>,
}

/// Runs a server of one worker under callgrind, has `drive` send it requests, and stops it. Returns
/// the instructions.
pub fn run_server(
    mut command: Command,
    options: &[&str],
    drive: impl FnOnce(&Ports) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    // The server chooses its port. A port that was chosen here could be taken when it starts.
    let file = port_file();
    command
        .args([
            "serve",
            "-t",
            "1",
            "-m",
            "64",
            "-l",
            "127.0.0.1",
            "-p",
            "-1",
        ])
        .args(options)
        .env("MEMCACHED_PORT_FILENAME", &file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start valgrind")?;
    let sent = ports(&file).and_then(|ports| drive(&ports));
    let _ = fs::remove_file(&file);
    let stopped = stop(&child);
    if sent.is_err() || stopped.is_err() {
        // It may not have understood, and would be waited for.
        child.kill()?;
    }
    let output = child.wait_with_output()?;
    sent.and(stopped)?;
    callgrind::collected(&command, &output)
}

/// A file for the ports of a server; each call names another one.
fn port_file() -> PathBuf {
    static SERVERS: AtomicUsize = AtomicUsize::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("ports-{}-{number}", std::process::id());
    target_dir().join("callgrind").join(name)
}

/// The ports of a server, when it has written the file.
fn ports(file: &Path) -> anyhow::Result<Ports> {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(file) {
            Ok(text) => {
                let port = |of: &str| text.lines().find_map(|line| line.strip_prefix(of));
                return Ok(Ports {
                    tcp: port("TCP INET: ")
                        .context("the server has no TCP port")?
                        .parse()?,
                    udp: port("UDP INET: ").map(str::parse).transpose()?,
                });
            }
            Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn stop(child: &Child) -> anyhow::Result<()> {
    run(&mut program("kill", &["-INT", &child.id().to_string()]))
}

pub fn connect(port: u16) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection, of a user if there is a login.
fn logged_in(port: u16, login: &str) -> anyhow::Result<TcpStream> {
    let mut stream = connect(port)?;
    if !login.is_empty() {
        let request = format!("set login 0 0 {}\r\n{login}\r\n", login.len());
        exchange(&mut [&mut stream], &request, "STORED\r\n", 1)?;
    }
    Ok(stream)
}

fn key(number: usize) -> String {
    format!("key:{:012}", number % KEYS)
}

fn set(number: usize) -> String {
    let value = "x".repeat(VALUE_BYTES);
    format!("set {} 0 0 {VALUE_BYTES}\r\n{value}\r\n", key(number))
}

/// Stores the items. Returns the connection.
pub fn store(port: u16) -> anyhow::Result<TcpStream> {
    store_as(port, "")
}

fn store_as(port: u16, login: &str) -> anyhow::Result<TcpStream> {
    let mut stream = logged_in(port, login)?;
    for number in 0..KEYS {
        exchange(&mut [&mut stream], &set(number), "STORED\r\n", 1)?;
    }
    Ok(stream)
}

/// Stores the items, then has every connection send that often.
fn send_all(port: u16, login: &str, scenario: &Scenario, rounds: usize) -> anyhow::Result<()> {
    let first = store_as(port, login)?;
    let mut streams = vec![first];
    for _ in 1..CONNECTIONS {
        streams.push(logged_in(port, login)?);
    }
    let mut streams: Vec<&mut TcpStream> = streams.iter_mut().collect();
    for round in 0..rounds {
        // Every 7th key, so that neighbours in a batch are no neighbours in memory.
        let numbers = |request: usize| {
            (0..scenario.keys).map(move |n| 7 * (round * 50 + request * scenario.keys + n))
        };
        let request = |request| match scenario.is_set {
            true => set(numbers(request).next().unwrap_or_default()),
            false => {
                let keys: Vec<String> = numbers(request).map(key).collect();
                format!("get {}\r\n", keys.join(" "))
            }
        };
        let requests: String = (0..scenario.requests).map(request).collect();
        let end = match scenario.is_set {
            true => "STORED\r\n",
            false => "END\r\n",
        };
        if scenario.requests == 1 {
            for stream in &mut streams {
                exchange(&mut [stream], &requests, end, 1)?;
            }
        } else {
            exchange(&mut streams, &requests, end, scenario.requests)?;
        }
    }
    Ok(())
}

/// Has connections send the same requests, and reads until each has received `end` that often.
fn exchange(
    streams: &mut [&mut TcpStream],
    requests: &str,
    end: &str,
    times: usize,
) -> anyhow::Result<()> {
    for stream in streams.iter_mut() {
        stream.write_all(requests.as_bytes())?;
    }
    let mut buffer = vec![0; 64 << 10];
    for stream in streams.iter_mut() {
        let mut received = Vec::new();
        while received
            .windows(end.len())
            .filter(|w| *w == end.as_bytes())
            .count()
            < times
        {
            match stream.read(&mut buffer)? {
                0 => bail!("the server closed the connection"),
                count => received.extend_from_slice(&buffer[..count]),
            }
        }
    }
    Ok(())
}

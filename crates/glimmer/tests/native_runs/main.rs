//! The client library with a real server over real sockets: every access mode and every table,
//! small and large items, together with memcached's protocol on the same store.

mod collisions;
mod faces;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use glimmer_client::{
    Client, CountError, Directory, Exptime, GetError, Session, Settings, StoreError,
};
use glimmer_measure::ports::free_ports;

const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    child: Child,
    text: String,
    native: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(arguments: &[&str]) -> Server {
    let port = free_ports(1).unwrap().to_string();
    let child = Command::new(env!("CARGO_BIN_EXE_glimmer"))
        .args([
            "serve",
            "-l",
            "127.0.0.1",
            "-p",
            &port,
            "--native-port",
            "-1",
        ])
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server {
        child,
        text: format!("127.0.0.1:{port}"),
        native: String::new(),
    };
    let begin = Instant::now();
    while TcpStream::connect(&server.text).is_err() {
        assert!(begin.elapsed() < PATIENCE, "{arguments:?} does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let first = figure(&server, "stats native", "port:127.0.0.1:0");
    server.native = format!("127.0.0.1:{first}");
    server
}

/// The reply to a command, up to `END`.
fn say(server: &Server, line: &str) -> String {
    let mut stream = TcpStream::connect(&server.text).unwrap();
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    while !answer.ends_with("END\r\n") {
        assert!(reader.read_line(&mut answer).unwrap() > 0, "{answer}");
    }
    answer
}

fn figure(server: &Server, command: &str, name: &str) -> String {
    value(&say(server, command), name).to_owned()
}

/// A figure in an answer to `stats`.
fn value<'a>(answer: &'a str, name: &str) -> &'a str {
    let start = format!("STAT {name} ");
    let line = answer.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("{name} in {answer}"))
}

fn check_all(server: &Server) {
    // This setting matters only if the server directs requests.
    let settings = Settings {
        round_robin: true,
        // An unoptimised server on a shared machine is slow with large values.
        deadline_us: PATIENCE.as_micros() as u64,
        ..Settings::default()
    };
    let mut client = Client::connect_with(&server.native, settings).unwrap();
    assert_eq!(client.get(b"none").unwrap(), None);
    client.put(b"greeting", b"hello", 7, 0).unwrap();
    let item = client.get_for_swap(b"greeting").unwrap().unwrap();
    assert_eq!((item.value.as_slice(), item.flags), (&b"hello"[..], 7));
    assert!(item.cas > 0);
    // memcached clients see the same store.
    assert_eq!(
        say(server, "get greeting"),
        "VALUE greeting 7 5\r\nhello\r\nEND\r\n"
    );
    assert!(!client.add(b"greeting", b"again", 0, 0).unwrap());
    assert!(client.replace(b"greeting", b"hi", 0, 0).unwrap());
    assert!(!client.replace(b"none", b"hi", 0, 0).unwrap());
    let stale = client.compare_and_swap(b"greeting", item.cas, b"late", 0, 0);
    assert!(!stale.unwrap());
    let cas = client.get_for_swap(b"greeting").unwrap().unwrap().cas;
    assert!(
        client
            .compare_and_swap(b"greeting", cas, b"swapped", 0, 0)
            .unwrap()
    );
    assert!(client.touch(b"greeting", Exptime::ms(600_500)).unwrap());
    let shown = say(server, "mg greeting t m\r\nget none");
    let left_ms = shown.lines().next().unwrap().strip_prefix("HD t");
    assert!((1..=600_500).contains(&left_ms.unwrap().parse().unwrap()));
    assert!(client.touch(b"greeting", 1000).unwrap());
    assert!(!client.touch(b"none", 1000).unwrap());

    // Items of a prefix that was flushed are gone for native clients, too.
    client.put(b"gone:1", b"old", 0, 0).unwrap();
    assert_eq!(
        say(server, "flush_prefix gone\r\nget gone:1"),
        "OK\r\nEND\r\n"
    );
    assert_eq!(client.get(b"gone:1").unwrap(), None);
    assert!(client.add(b"gone:1", b"new", 0, 0).unwrap());
    let found = client.get(b"gone:1").unwrap();
    assert_eq!(found.unwrap().value, b"new");

    assert!(client.add(b"count", b"41", 0, 0).unwrap());
    assert_eq!(client.increment(b"count", 1).unwrap(), Some(42));
    assert_eq!(client.decrement(b"count", 50).unwrap(), Some(0));
    assert_eq!(client.increment(b"none", 1).unwrap(), None);
    let error = client.increment(b"greeting", 1).unwrap_err();
    assert!(matches!(error, CountError::NotANumber), "{error}");
    assert!(client.delete(b"greeting").unwrap());
    assert!(!client.delete(b"greeting").unwrap());

    // Sizes around the limits of a datagram and of a window of fragments, and up to the item limit.
    for bytes in [0, 1, 1_280, 1_352, 1_400, 5_000, 43_264, 100_000, 1_000_000] {
        let value: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
        let key = format!("of {bytes}");
        client.put(key.as_bytes(), &value, 0, 0).unwrap();
        let found = client.get(key.as_bytes()).unwrap().unwrap();
        assert!(found.value == value, "{bytes} bytes");
    }
    let error = client.put(b"huge", &vec![0; 2 << 20], 0, 0).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge), "{error}");
    let error = client.get(&[b'k'; 251]).unwrap_err();
    assert!(matches!(error, GetError::Key), "{error}");

    let keys: Vec<Vec<u8>> = (0..3_000)
        .map(|n| format!("key {n}").into_bytes())
        .collect();
    for key in keys.iter().step_by(2) {
        client.put(key, key, 0, 0).unwrap();
    }
    let names: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = client.get_many(&names).unwrap();
    for (n, (key, found)) in keys.iter().zip(found).enumerate() {
        let value = found.unwrap().map(|item| item.value);
        assert_eq!(value, n.is_multiple_of(2).then(|| key.clone()));
    }
}

#[test]
fn every_access_mode_and_every_table_serves_native_clients() {
    for arguments in [
        &["-t", "2", "--access", "erew"][..],
        &["-t", "3", "--access", "crew"],
        // No worker is reserved for large values, so nothing is handed over.
        &["-t", "2", "--dispatch", "keyhash", "--native-check-keyhash"],
        &["-t", "2", "--access", "erew", "--mode", "store"],
        &["-t", "2", "--access", "crew", "--table", "memc3"],
        &["-t", "1", "--access", "erew", "--busy-poll"],
        &[
            "-t",
            "2",
            "--access",
            "erew",
            "--native-direction",
            "server",
        ],
    ] {
        let first = ["-m", "256", "--prefix-delimiter", ":"];
        let server = start(&[&first[..], arguments].concat());
        check_all(&server);
        let is_directed = figure(&server, "stats native", "direction") == "client";
        // A worker counts what it has done after it has answered.
        let begin = Instant::now();
        loop {
            let answer = say(&server, "stats native");
            let count = |name| -> u64 { value(&answer, name).parse().unwrap() };
            let handed_over = if is_directed { 0..1 } else { 1_001..u64::MAX };
            if count("requests") > 4_500
                && count("datagrams") >= count("receives")
                && handed_over.contains(&count("handed_over"))
                && !(is_directed && count("misdirected") > 0)
            {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{arguments:?}: {answer}");
        }
    }
}

/// The directory of a server, and the bytes that told it.
fn directory(server: &Server) -> (Directory, Vec<u8>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&server.native).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut session: Session<()> = Session::new(Settings::default(), 1);
    session.transmit(0, &mut |_, question, _| {
        socket.send(question).unwrap();
    });
    let mut answer = vec![0; 1500];
    let bytes = socket.recv(&mut answer).unwrap();
    session.receive(&answer[..bytes], 1, &mut |(), _| {});
    answer.truncate(bytes);
    (session.directory().unwrap().clone(), answer)
}

#[test]
fn stats_native_tells_what_the_directory_tells() {
    let server = start(&["-m", "64", "-t", "3", "--access", "crew", "-I", "512k"]);
    let (directory, answer) = directory(&server);
    let ports = &directory.ports;
    for (name, told) in [
        ("enabled", "yes".to_owned()),
        ("version", answer[1].to_string()),
        (
            "directory",
            u32::from_le_bytes(answer[4..8].try_into().unwrap()).to_string(),
        ),
        ("mode", format!("{:?}", directory.mode).to_lowercase()),
        ("access", format!("{:?}", directory.access).to_lowercase()),
        (
            "direction",
            format!("{:?}", directory.direction).to_lowercase(),
        ),
        ("partitions", directory.partitions.to_string()),
        ("cores", ports.len().to_string()),
        ("item_size_max", directory.item_bytes_max.to_string()),
        ("mutation_window", directory.mutation_window.to_string()),
        ("token_seconds", directory.token_s.to_string()),
        ("port:127.0.0.1:0", ports[0].to_string()),
        ("port:127.0.0.1:2", ports[2].to_string()),
        ("worker:0:datagrams", "1".to_owned()),
        ("worker:0:receives", "1".to_owned()),
        ("worker:1:datagrams", "0".to_owned()),
    ] {
        // A worker publishes its counters at the end of a turn.
        let begin = Instant::now();
        let mut shown = figure(&server, "stats native", name);
        while shown != told && begin.elapsed() < PATIENCE {
            shown = figure(&server, "stats native", name);
        }
        assert_eq!(shown, told, "{name}");
    }
    assert_eq!(
        (ports.len(), figure(&server, "stats native", "access")),
        (3, "crew".to_owned())
    );
}

#[test]
fn random_datagrams_disturb_no_client() {
    let mut server = start(&["-m", "64", "-t", "1"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&server.native).unwrap();
    let mut word = 0x9E37_79B9_7F4A_7C15u64;
    let mut client = Client::connect(&server.native).unwrap();
    for round in 0..20_000u32 {
        let mut datagram = [0; 200];
        for bytes in datagram.as_chunks_mut::<8>().0 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            *bytes = word.to_le_bytes();
        }
        if round.is_multiple_of(2) {
            datagram[..4].copy_from_slice(&[0xB1, 1, (round % 6 / 2) as u8 + 1, 1]);
        }
        let _ = socket.send(&datagram[..(word % 200) as usize]);
        if round.is_multiple_of(1000) {
            let value = round.to_string();
            client.put(b"key", value.as_bytes(), 0, 0).unwrap();
            assert_eq!(client.get(b"key").unwrap().unwrap().value, value.as_bytes());
        }
    }
    assert!(server.child.try_wait().unwrap().is_none(), "it still runs");
    assert_eq!(figure(&server, "stats native", "unproven"), "0");
}

#[test]
fn a_client_finds_a_server_that_was_restarted() {
    let port = free_ports(1).unwrap().to_string();
    let arguments = ["-m", "64", "-t", "1", "--native-port", &port];
    let first = start(&arguments);
    let mut client = Client::connect(&first.native).unwrap();
    client.put(b"key", b"value", 0, 0).unwrap();
    drop(first);
    let second = start(&arguments);
    // A different seed, a different directory, and an empty store.
    assert_eq!(client.get(b"key").unwrap(), None);
    client.put(b"key", b"another", 0, 0).unwrap();
    assert_eq!(
        say(&second, "get key"),
        "VALUE key 0 7\r\nanother\r\nEND\r\n"
    );
}

#[test]
fn users_and_native_clients_exclude_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let users = directory.path().join("users");
    std::fs::write(&users, "a:b\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_glimmer"))
        .args(["serve", "-p", "0", "--native-port", "-1", "-Y"])
        .arg(&users)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(!child.wait().unwrap().success());
    let mut message = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut message).unwrap();
    assert!(message.contains("--native-port"), "{message}");
}

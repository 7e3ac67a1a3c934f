//! A server that is started again at another address, under the same name. The names come from a
//! file that only this test's processes see as `/etc/hosts`, which needs root.

#[path = "support/items.rs"]
mod items;

use glimmer_client::{Client, GetError, Member, Placement, Settings, transports};
use items::Server;
use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

const NAME: &str = "moved.glimmer.test";
/// In the inner process: the file with the names.
const HOSTS: &str = "GLIMMER_TEST_HOSTS";
const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 1_000_000,
    resends: true,
    requests_per_datagram: 32,
    round_robin: false,
    away_after: 1,
    retry_us: 20_000,
    eject: false,
};
/// Requests after which a client should have found the server.
const TRIES: u32 = 1_000;

/// Runs the test of this name again, in a process with its own `/etc/hosts`. Returns whether this
/// is that process.
fn has_names(test: &str) -> bool {
    if env::var_os(HOSTS).is_some() {
        return true;
    }
    let mut hosts = env::temp_dir();
    hosts.push(format!("glimmer-hosts-{}-{test}", std::process::id()));
    fs::write(&hosts, "").unwrap();
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        (command.args(["--mount", "sh", "-c"]).arg(script))
            .args([hosts.as_os_str(), env::current_exe().unwrap().as_os_str()]);
        command
    };
    const MOUNT: &str = r#"mount --bind "$0" /etc/hosts"#;
    let permitted = unshare(MOUNT).output();
    let missing = match &permitted {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(missing) = missing {
        let _ = fs::remove_file(&hosts);
        println!("SKIPPED: names for a test alone need root and unshare: {missing}");
        assert!(env::var_os("CI").is_none(), "CI runs all tests");
        return false;
    }
    let script = format!(r#"{MOUNT} && exec "$1" --exact {test} --nocapture"#);
    let status = unshare(&script).env(HOSTS, &hosts).status();
    let _ = fs::remove_file(&hosts);
    assert!(status.unwrap().success());
    false
}

/// Gives the name to this address alone.
fn name(address: SocketAddr) {
    let line = format!("{} {NAME}\n", address.ip());
    // Written over, as all lines are of one length: a search that found the file empty would ask
    // others, and wait for them.
    let mut hosts = fs::OpenOptions::new();
    let hosts = hosts.write(true).open(env::var_os(HOSTS).unwrap());
    hosts.unwrap().write_all(line.as_bytes()).unwrap();
}

fn server(address: SocketAddr) -> Server {
    Server::start(transports::default().open(address).unwrap())
}

fn member(server: SocketAddr) -> Member {
    Member::of(NAME, server.port())
}

/// The server from which a read has no answer, for whatever reason.
fn unanswered<T>(read: Result<T, GetError>) -> Option<SocketAddr> {
    match read {
        Err(GetError::Refused(at) | GetError::Silent(at) | GetError::Away(at)) => Some(at),
        _ => None,
    }
}

/// The same port at the next address of this host.
fn elsewhere(server: SocketAddr) -> SocketAddr {
    SocketAddr::new([127, 0, 0, 2].into(), server.port())
}

#[test]
fn a_client_finds_a_server_that_has_moved() {
    if !has_names("a_client_finds_a_server_that_has_moved") {
        return;
    }
    let first = server("127.0.0.1:0".parse().unwrap());
    let before = first.address;
    name(before);
    let members = [member(before)];
    let mut client = Client::connect_to_all(&members, Placement::Ketama, SETTINGS).unwrap();
    client.put(b"key", b"first", 0, 0).unwrap();
    first.stop();
    // Nothing listens there, and the name is still the same.
    for _ in 0..20 {
        assert_eq!(unanswered(client.get(b"key")), Some(before));
        thread::sleep(Duration::from_millis(5));
    }
    let after = elsewhere(before);
    let second = server(after);
    // What is at the first address now never answers.
    let silent = std::net::UdpSocket::bind(before).unwrap();
    assert_eq!(unanswered(client.get(b"key")), Some(before));
    name(after);
    let found = (0..TRIES).find_map(|_| {
        thread::sleep(Duration::from_millis(5));
        client.get(b"key").ok()
    });
    assert_eq!(found, Some(None), "the second server has no items");
    client.put(b"key", b"second", 0, 0).unwrap();
    assert_eq!(client.get(b"key").unwrap().unwrap().value, b"second");
    drop(silent);
    second.stop();
    assert_eq!(unanswered(client.get(b"key")), Some(after));
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_client_for_tasks_finds_it_too() {
    use glimmer_client::nonblocking;
    if !has_names("a_client_for_tasks_finds_it_too") {
        return;
    }
    let first = server("127.0.0.1:0".parse().unwrap());
    let before = first.address;
    name(before);
    let members = [member(before)];
    let client = nonblocking::Client::connect_to_all(&members, Placement::Ketama, SETTINGS);
    let client = client.await.unwrap();
    client.put(b"key", b"first", 0, 0).await.unwrap();
    first.stop();
    let after = elsewhere(before);
    let second = server(after);
    let silent = std::net::UdpSocket::bind(before).unwrap();
    assert_eq!(unanswered(client.get(b"key").await), Some(before));
    name(after);
    let mut found = None;
    for _ in 0..TRIES {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if let Ok(item) = client.get(b"key").await {
            found = Some(item);
            break;
        }
    }
    assert_eq!(found, Some(None), "the second server has no items");
    client.put(b"key", b"second", 0, 0).await.unwrap();
    drop(silent);
    second.stop();
    assert_eq!(unanswered(client.get(b"key").await), Some(after));
}

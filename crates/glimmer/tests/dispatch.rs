//! `glimmer dispatch` and `glimmer snapshot`, against a running server.

#[path = "../../../tests/support/certificates.rs"]
mod certificates;
#[path = "support/server.rs"]
mod server;
#[path = "dispatch/snapshots.rs"]
mod snapshots;

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use certificates::{Authority, VALID};
use glimmer_measure::ports::free_ports;
use server::Server;

const GLIMMER: &str = env!("CARGO_BIN_EXE_glimmer");

fn dispatch(socket: &Path, arguments: &[&str]) -> Output {
    Command::new(GLIMMER)
        .arg("dispatch")
        .args(arguments)
        .arg("--server")
        .arg(format!("unix:{}", socket.display()))
        .output()
        .unwrap()
}

/// The lines that a command shows.
fn shown(socket: &Path, arguments: &[&str]) -> Vec<String> {
    let output = dispatch(socket, arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// The complaint of a command that fails.
fn complaint(socket: &Path, arguments: &[&str]) -> String {
    let output = dispatch(socket, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn it_shows_the_plan_and_puts_another_policy_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let server = Server::start(&socket, &["-t", "2", "-p", "0", "--access", "crcw"]);
    assert!(shown(&socket, &[]).contains(&"policy size-aware".to_owned()));
    let lines = shown(&socket, &["size-aware:4096"]);
    for line in [
        "policy size-aware",
        "workers_on_plan 2",
        "large_from_bytes 4096",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:?}");
    }
    assert!(complaint(&socket, &["nosuch"]).contains("one of keyhash"));
    assert!(complaint(&socket, &["keyhash owner"]).contains("one word"));
    assert!(shown(&socket, &[]).contains(&"policy size-aware".to_owned()));
    drop(server);
    assert!(complaint(&socket, &[]).contains("cannot connect"));
}

#[test]
fn a_policy_that_the_access_mode_excludes_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _server = Server::start(&socket, &["-t", "2", "-p", "0", "--access", "erew"]);
    let complaint = complaint(&socket, &["size-aware"]);
    assert!(
        complaint.ends_with(
            "change the access mode too, with glimmer dispatch size-aware --access crcw\n"
        ),
        "{complaint}"
    );
}

#[test]
fn an_access_mode_that_the_policy_excludes_is_refused_in_words_of_flags() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _server = Server::start(&socket, &["-t", "2", "-p", "0", "--access", "crcw"]);
    shown(&socket, &["size-aware"]);
    for (arguments, advice) in [
        (
            &["--access", "crew"][..],
            "change the policy too, with glimmer dispatch keyhash --access crew\n",
        ),
        (
            &["stealing", "--access", "erew"],
            "change the access mode too, with glimmer dispatch stealing --access crcw\n",
        ),
    ] {
        let complaint = complaint(&socket, arguments);
        assert!(complaint.ends_with(advice), "{complaint}");
    }
}

#[test]
fn a_server_that_shows_no_statistics_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, users) = (folder.path().join("socket"), folder.path().join("users"));
    let password = folder.path().join("password");
    std::fs::write(&users, "[ann]\npassword = 'secret'\nrights = ['get']\n").unwrap();
    std::fs::write(&password, "secret\n").unwrap();
    let [named, password] = [&users, &password].map(|path| path.display().to_string());
    let login = ["--auth-user", "ann", "--password-file", &password];
    for (settings, arguments, reason) in [
        (
            ["--users", &*named],
            &login[..],
            "stats dispatch: this user may not use the command",
        ),
        (
            ["--disable-commands", "stats"],
            &[],
            "stats dispatch: stats not allowed",
        ),
    ] {
        let _server = Server::start(&socket, &settings);
        let complaint = complaint(&socket, arguments);
        assert!(complaint.contains(reason), "{complaint}");
    }
}

#[test]
fn a_server_with_tls_and_users_is_asked_by_whoever_may() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&["127.0.0.1"], VALID);
    let users = authority
        .file("users", "ann:secret\n")
        .display()
        .to_string();
    let password = authority.file("password", "secret\n").display().to_string();
    let port = free_ports(1).unwrap().to_string();
    let address = format!("127.0.0.1:{port}");
    let child = Command::new(GLIMMER)
        .args([
            "serve",
            "-t",
            "2",
            "-m",
            "64",
            "-l",
            "127.0.0.1",
            "-p",
            &port,
            "-Y",
            &users,
        ])
        .args(authority.server(&identity))
        .stderr(Stdio::null())
        .spawn();
    let mut server = Server(child.unwrap());
    while TcpStream::connect(&address).is_err() {
        let ended = server.0.try_wait().unwrap();
        assert!(ended.is_none(), "the server has not started: {ended:?}");
        sleep(Duration::from_millis(10));
    }
    let ca = authority.named();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(GLIMMER);
        let command = command
            .args(["dispatch", "--server", &address])
            .args(arguments);
        let output = command.env_remove("GLIMMER_PASSWORD").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let trusting = ["--tls", "--tls-ca", &ca];
    let login = ["--auth-user", "ann", "--password-file", &password];
    let (succeeds, shown) = ask(&[&["keyhash"], &trusting[..], &login].concat());
    assert!(succeeds && shown.contains("policy keyhash\n"), "{shown}");
    for (arguments, words) in [
        (&[][..], "give --tls"),
        (&trusting, "give --auth-user"),
        (&[&["keyhash"], &trusting[..]].concat(), "give --auth-user"),
    ] {
        let (succeeds, complaint) = ask(arguments);
        assert!(!succeeds && complaint.contains(words), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

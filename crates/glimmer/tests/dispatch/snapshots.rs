//! `--snapshot` and `glimmer snapshot`, with the real program.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::GLIMMER;

/// Items that a test stores. Each hundredth has a large value.
const ITEMS: usize = 2_000;
/// Bytes of the last block of a file.
const END_BYTES: usize = 88;

/// A folder for a server, its socket and its file.
struct Home(tempfile::TempDir);

/// A running server, which is killed with its owner.
struct Server {
    child: Child,
    socket: PathBuf,
}

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("items")
    }

    fn unfinished(&self) -> PathBuf {
        self.0.path().join("items.unfinished")
    }

    fn command(&self, flags: &str) -> Command {
        self.command_by(Command::new(GLIMMER), flags)
    }

    /// What a program executes that takes a command.
    fn command_by(&self, mut command: Command, flags: &str) -> Command {
        command
            .args(["serve", "-u", "root", "-s"])
            .arg(self.0.path().join("socket"))
            .arg("--snapshot")
            .arg(self.file())
            .args(flags.split_whitespace());
        command
    }

    fn start(&self, flags: &str) -> Server {
        self.start_by(self.command(flags), flags)
    }

    fn start_by(&self, mut command: Command, flags: &str) -> Server {
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let socket = self.0.path().join("socket");
        let mut server = Server { child, socket };
        while UnixStream::connect(&server.socket).is_err() {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{flags}: {}", server.said());
            sleep(Duration::from_millis(5));
        }
        server
    }

    /// Why a server does not start.
    fn complaint(&self, flags: &str) -> String {
        let Output { status, stderr, .. } = self.command(flags).output().unwrap();
        assert!(!status.success());
        let text = String::from_utf8(stderr).unwrap();
        let last = text.lines().last().unwrap_or_default().to_owned();
        let name = self.file().display().to_string();
        assert!(
            last.contains("--snapshot") && last.contains(&name),
            "{text}"
        );
        last
    }
}

impl Server {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// What it has said when it has ended.
    fn said(&mut self) -> String {
        let mut text = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }

    /// Stops it. Returns what it has said.
    fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let said = self.said();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{said}");
        said
    }

    fn talk(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(&self.socket).unwrap())
    }

    /// Sends a line, and returns the line that answers it.
    fn ask(&self, said: &str) -> String {
        let mut stream = self.talk();
        stream.get_mut().write_all(said.as_bytes()).unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// A row of `stats glimmer`.
    fn row(&self, name: &str) -> String {
        let mut stream = self.talk();
        stream.get_mut().write_all(b"stats glimmer\r\n").unwrap();
        let lines = stream.lines().map(Result::unwrap);
        let row = lines
            .take_while(|line| line != "END")
            .find_map(|line| Some(line.strip_prefix(&format!("STAT {name} "))?.to_owned()));
        row.unwrap_or_else(|| panic!("there is no row {name}"))
    }

    fn fill(&self, items: usize) {
        let mut stream = self.talk();
        for nth in 0..items {
            let value = value(nth);
            let line = format!("set key{nth} {nth} 0 {} noreply\r\n", value.len());
            let set = [line.as_bytes(), &value, b"\r\n"].concat();
            stream.get_mut().write_all(&set).unwrap();
        }
        stream.get_mut().write_all(b"mn\r\n").unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "MN\r\n");
    }

    /// How many of the items are there. Each of them has to be as it was.
    fn count(&self, items: usize) -> usize {
        let (mut stream, mut found) = (self.talk(), 0);
        for nth in 0..items {
            let get = format!("get key{nth}\r\n");
            stream.get_mut().write_all(get.as_bytes()).unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if line == "END\r\n" {
                continue;
            }
            let expected = value(nth);
            assert_eq!(line, format!("VALUE key{nth} {nth} {}\r\n", expected.len()));
            let mut rest = vec![0; expected.len() + "\r\nEND\r\n".len()];
            stream.read_exact(&mut rest).unwrap();
            assert!(rest.starts_with(&expected), "key{nth}");
            found += 1;
        }
        found
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn value(nth: usize) -> Vec<u8> {
    let bytes = if nth.is_multiple_of(100) { 40_000 } else { 50 };
    format!("{nth:010}").into_bytes().repeat(bytes / 10)
}

fn snapshot(socket: &Path) -> Output {
    let mut command = Command::new(GLIMMER);
    let server = format!("unix:{}", socket.display());
    command
        .args(["snapshot", "--server", &server])
        .output()
        .unwrap()
}

/// The file of one server is loaded by others: of another size, table, access mode and number of
/// workers.
#[test]
fn a_server_of_other_settings_has_the_items() {
    let home = Home::new();
    let server = home.start("-m 64 -t 1");
    server.fill(ITEMS);
    server.ask("set lasts 1 1000 1\r\nx\r\n");
    let cas = server
        .ask("gets key7\r\n")
        .split(' ')
        .next_back()
        .unwrap()
        .to_owned();
    let said = server.stop();
    assert!(
        said.contains(&format!("wrote {} items", ITEMS + 1)),
        "{said}"
    );
    assert_eq!(home.file().metadata().unwrap().mode() & 0o777, 0o600);
    for flags in [
        "-m 128 -t 2 --access crcw",
        "-m 64 -t 2 --table memc3 --access crew",
        "-m 64 -t 2 --mode store --access erew",
        "-m 64 -t 1 --table memc3",
    ] {
        let server = home.start(flags);
        assert_eq!(server.count(ITEMS), ITEMS, "{flags}");
        assert_eq!(server.row("snapshot_loaded"), (ITEMS + 1).to_string());
        assert_eq!(server.row("snapshot_dropped"), "0", "{flags}");
        let again = server.ask("gets key7\r\n");
        assert!(again.ends_with(&format!(" {cas}")), "{again} is not {cas}");
        let left = server.ask("mg lasts t\r\n");
        let left: u64 = left.trim_start_matches("HD t").parse().expect("it expires");
        assert!((900..=1_000).contains(&left), "{left}");
        // The next server loads what this one has loaded and written.
        server.stop();
    }
    // One without room for all of it has the rest, and counts what it has not.
    let server = home.start("-m 64 -t 1 -I 16k");
    assert_eq!(server.count(ITEMS), ITEMS - ITEMS / 100);
    assert_eq!(server.row("snapshot_dropped"), (ITEMS / 100).to_string());
}

#[test]
fn a_running_server_writes_its_items_on_command() {
    let home = Home::new();
    let server = home.start("-m 64 -t 2");
    server.fill(ITEMS);
    let Output {
        status,
        stdout,
        stderr,
    } = snapshot(&server.socket);
    let text = String::from_utf8([stdout, stderr].concat()).unwrap();
    assert!(status.success() && text.contains("2000 items"), "{text}");
    assert_eq!(server.row("snapshot_items"), ITEMS.to_string());
    assert_eq!(server.row("snapshots_written"), "1");
    drop(server);
    kill_while_writing(&home);
    let server = home.start("-m 64 -t 1");
    assert_eq!(server.count(ITEMS), ITEMS);
    assert!(!home.unfinished().exists());
    // A file that cannot be written is told to who wants it.
    fs::remove_file(home.file()).unwrap();
    fs::create_dir(home.file()).unwrap();
    let Output { status, stderr, .. } = snapshot(&server.socket);
    let text = String::from_utf8(stderr).unwrap();
    assert!(
        !status.success() && text.contains("cannot be written"),
        "{text}"
    );
    assert_eq!(server.row("snapshots_failed"), "1");
    drop(server);
    fs::remove_dir(home.file()).unwrap();
    // Nor does anybody write where the operator has named no file.
    let mut refused = home.start("-m 64 --disable-commands snapshot");
    assert_eq!(
        refused.ask("snapshot\r\n"),
        "CLIENT_ERROR snapshot not allowed"
    );
    refused.signal(Signal::SIGKILL);
    refused.child.wait().unwrap();
    // Nothing is written for a command that could not tell of its end.
    let mute = home.start("-m 64 --disable-commands stats");
    let Output { status, stderr, .. } = snapshot(&mute.socket);
    let text = String::from_utf8(stderr).unwrap();
    assert!(
        !status.success() && text.contains("stats glimmer: stats not allowed"),
        "{text}"
    );
    assert_eq!(mute.ask("mn\r\n"), "MN");
    assert!(!home.file().exists() && !home.unfinished().exists());
}

/// A server that is killed while it writes leaves the file as it was.
fn kill_while_writing(home: &Home) {
    const TRIES_MAX: usize = 20;
    let before = fs::read(home.file()).unwrap();
    for _ in 0..TRIES_MAX {
        let server = home.start("-m 64 -t 1");
        server.fill(10 * ITEMS);
        assert_eq!(server.ask("snapshot\r\n"), "OK");
        while !home.unfinished().exists() && server.row("snapshots_written") == "0" {}
        drop(server);
        if home.unfinished().exists() {
            assert!(fs::read(home.file()).unwrap() == before);
            return;
        }
        // It was faster.
        fs::write(home.file(), &before).unwrap();
    }
    panic!("no server was killed while it wrote");
}

/// While a server still writes its file, as it stops, the next one may start: its addresses are
/// free. Here, it is the test that has the unfinished file.
#[test]
fn a_server_waits_for_the_file_that_another_one_still_writes() {
    let home = Home::new();
    let mut server = home.start("-m 64 -t 2");
    server.fill(ITEMS);
    server.signal(Signal::SIGTERM);
    while UnixStream::connect(&server.socket).is_ok() {}
    assert!(home.unfinished().exists() || home.file().exists());
    let said = server.said();
    assert!(server.child.wait().unwrap().success(), "{said}");
    let whole = fs::read(home.file()).unwrap();
    fs::remove_file(home.file()).unwrap();
    let writing = fs::File::create(home.unfinished()).unwrap();
    writing.lock().unwrap();
    // It says that it waits, and ends when it is told to.
    let waiting = || {
        let mut command = home.command("-m 64 -t 1");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("another process is writing it") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        let socket = home.0.path().join("socket");
        (Server { child, socket }, said)
    };
    let (mut server, _said) = waiting();
    server.signal(Signal::SIGTERM);
    assert!(server.child.wait().unwrap().success());
    assert!(home.unfinished().exists() && !home.file().exists());
    // When the file is finished, it is loaded.
    let (server, _said) = waiting();
    fs::write(home.file(), &whole).unwrap();
    fs::remove_file(home.unfinished()).unwrap();
    drop(writing);
    assert_eq!(server.count(ITEMS), ITEMS);
    assert_eq!(server.row("snapshot_damaged"), "0");
    // Nor is one written over another.
    let writing = fs::File::create(home.unfinished()).unwrap();
    writing.lock().unwrap();
    let Output { status, stderr, .. } = snapshot(&server.socket);
    let text = String::from_utf8(stderr).unwrap();
    let is_told = text.contains("another process is writing it");
    assert!(!status.success() && is_told, "{text}");
    assert!(home.unfinished().exists());
    drop(writing);
    assert!(snapshot(&server.socket).status.success());
    assert!(!home.unfinished().exists());
}

/// What does not fit its disk is told in a line, leaves the older file as it was, and takes no
/// room. Here, it is the size of files that is limited.
#[test]
fn a_file_without_room_leaves_the_older_one() {
    let home = Home::new();
    let mut shell = Command::new("sh");
    let limit = "ulimit -f 400; exec \"$@\"";
    shell.args(["-c", limit, "sh", GLIMMER]);
    let mut server = home.start_by(home.command_by(shell, "-m 64 -t 2"), "");
    server.fill(20);
    assert!(snapshot(&server.socket).status.success());
    let older = fs::read(home.file()).unwrap();
    server.fill(ITEMS);
    let Output { status, stderr, .. } = snapshot(&server.socket);
    let text = String::from_utf8(stderr).unwrap();
    let is_told = |text: &str| text.contains("cannot be written") && text.lines().count() == 1;
    assert!(!status.success() && is_told(&text), "{text}");
    let is_as_before = || {
        assert!(fs::read(home.file()).unwrap() == older);
        assert!(!home.unfinished().exists());
    };
    is_as_before();
    server.signal(Signal::SIGTERM);
    let said = server.said();
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    assert!(is_told(said.lines().last().unwrap_or_default()), "{said}");
    is_as_before();
}

/// What is wrong with a file is one line, which leaves the file as it is.
#[test]
fn a_file_that_is_not_to_be_loaded_stays_as_it_is() {
    let home = Home::new();
    let server = home.start("-m 64 -t 1");
    server.fill(ITEMS);
    server.stop();
    let whole = fs::read(home.file()).unwrap();
    let memory_file = home.0.path().join("memory");
    let with_memory_file = format!("-m 64 -e {}", memory_file.display());
    home.start(&with_memory_file).stop();
    fs::write(home.file(), &whole).unwrap();
    for (bytes, words) in [
        (&b"precious"[..], "not a snapshot of Glimmer"),
        (&[&whole[..8], &[9][..], &whole[9..]].concat(), "version 9"),
        (&whole[..30], "its head is damaged"),
    ] {
        fs::write(home.file(), bytes).unwrap();
        let complaint = home.complaint("-m 64");
        assert!(complaint.contains(words), "{complaint}");
        // It is not loaded where a memory file has the items, but it would be replaced.
        let complaint = home.complaint(&with_memory_file);
        assert!(complaint.contains(words), "{complaint}");
        assert!(fs::read(home.file()).unwrap() == bytes);
    }
    // What is whole of a damaged file is loaded.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for (bytes, words) in [
        (&damaged[..], "damaged stretches"),
        (&whole[..whole.len() - 9], "not complete"),
        // Without its end, and with all of its items.
        (&whole[..whole.len() - END_BYTES], "not complete"),
    ] {
        fs::write(home.file(), bytes).unwrap();
        let mut server = home.start("-m 64 -t 1");
        let found = server.count(ITEMS);
        assert!((1..=ITEMS).contains(&found));
        assert_eq!(server.row("snapshot_loaded"), found.to_string());
        assert_ne!(server.row("snapshot_damaged"), "0", "{words}");
        server.signal(Signal::SIGKILL);
        let said = server.said();
        assert!(said.contains(words), "{said}");
    }
    fs::remove_file(home.file()).unwrap();
    fs::create_dir(home.file()).unwrap();
    assert!(home.complaint("-m 64").contains("not a regular file"));
    fs::remove_dir(home.file()).unwrap();
    symlink(home.0.path().join("other"), home.file()).unwrap();
    assert!(home.complaint("-m 64").contains("name the file itself"));
    fs::remove_file(home.file()).unwrap();
    fs::create_dir(home.unfinished()).unwrap();
    let complaint = home.complaint("-m 64");
    assert!(complaint.contains("remove it"), "{complaint}");
    fs::remove_dir(home.unfinished()).unwrap();
    // Root may write anywhere.
    let folder = home.0.path();
    fs::set_permissions(folder, Permissions::from_mode(0o500)).unwrap();
    if !nix::unistd::geteuid().is_root() {
        assert!(home.complaint("-m 64").contains("its folder"));
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
}

/// A flush that was acknowledged takes what it was to take, although the server is another one by
/// then.
#[test]
fn a_delayed_flush_outlives_the_server() {
    let home = Home::new();
    let server = home.start("-m 64 -t 1");
    assert_eq!(server.ask("set a 0 0 1\r\nx\r\n"), "STORED");
    assert_eq!(server.ask("set b 0 500 1\r\nx\r\n"), "STORED");
    assert_eq!(server.ask("flush_all 1000\r\n"), "OK");
    server.stop();
    let server = home.start("-m 64 -t 1");
    let left_s = |key: &str| {
        let line = server.ask(&format!("mg {key} t\r\n"));
        let seconds = line.strip_prefix("HD t").expect(&line);
        seconds.parse::<i64>().expect(&line)
    };
    assert!((501..=1000).contains(&left_s("a")), "{}", left_s("a"));
    assert!((0..=500).contains(&left_s("b")), "{}", left_s("b"));
    server.stop();
}

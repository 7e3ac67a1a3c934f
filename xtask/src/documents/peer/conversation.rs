//! A server of either kind, and what is said to it.

use super::cells::Answer;
use crate::process;
use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that says nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two parts of a stream, which the server then meets one after the other.
const PAUSE: Duration = Duration::from_millis(50);
/// The file to which both servers write their ports, once they listen.
const PORTS: &str = "ports";
const LOG: &str = "log";

/// What stands before a datagram: number of the request, number of the datagram, datagrams, 0.
const FRAME_BYTES: usize = 8;
/// The request that comes after all others.
const LAST: u16 = u16::MAX;

/// A server with its folder, which both end with this value.
pub struct Server {
    child: Child,
    folder: TempDir,
    has_ended: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts it at any free port of 127.0.0.1 unless the flags say otherwise, and waits until it
    /// listens or has ended.
    pub fn start(command: &[OsString], flags: &[String], as_root: bool) -> anyhow::Result<Server> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("users"), "ann:secret\n")?;
        let log = File::create(folder.path().join(LOG))?;
        let [program, first @ ..] = command else {
            bail!("a command has a name");
        };
        let has = |flag: &str| flags.iter().any(|it| it.starts_with(flag));
        let mut command = process::program(program, &[]);
        command.args(first);
        if !has("-p") {
            command.args(["-p", "-1"]);
        }
        if !has("-l") {
            command.args(["-l", "127.0.0.1"]);
        }
        if process::is_root()? && !as_root && !has("-u") {
            command.args(["-u", "root"]);
        }
        command
            .args(flags)
            .current_dir(folder.path())
            .env("MEMCACHED_PORT_FILENAME", folder.path().join(PORTS))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut server = Server {
            child: command.spawn()?,
            folder,
            has_ended: false,
        };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.folder.path().join(PORTS).exists() {
            if self.child.try_wait()?.is_some() {
                self.has_ended = true;
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("it neither listens nor ends");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Lets it end in its own way, so that all of its log is there, and returns how it went.
    pub fn stop(mut self) -> anyhow::Result<Answer> {
        let pid = Pid::from_raw(self.child.id().try_into()?);
        // Fails if it has ended.
        let _ = kill(pid, Signal::SIGTERM);
        let ended = self.child.wait()?.code();
        let log = fs::read(self.folder.path().join(LOG))?;
        Ok(match ended {
            Some(status) if status != 0 => Answer::Ended { status, log },
            _ => Answer::Ready { log },
        })
    }

    /// The port of this kind of socket.
    fn port(&self, kind: &str) -> anyhow::Result<u16> {
        let ports = fs::read_to_string(self.folder.path().join(PORTS))?;
        let mut lines = ports.lines();
        let line = lines.find_map(|line| line.strip_prefix(kind)?.strip_prefix(" INET: "));
        Ok(line
            .with_context(|| format!("no port of {kind}"))?
            .parse()?)
    }

    /// Sends the parts over one connection, closes this end, and returns what comes until the
    /// server closes the other.
    pub fn converse(&mut self, parts: &[Vec<u8>]) -> anyhow::Result<Vec<u8>> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port("TCP")?))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                std::thread::sleep(PAUSE);
            }
            // The server may have closed the connection.
            let _ = stream.write_all(part);
        }
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        match stream.read_to_end(&mut reply) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => bail!("it does not answer"),
            // A connection that is reset is closed, too.
            _ => Ok(reply),
        }
    }

    /// Sends the datagrams, and returns what comes before the reply to one more, each reply between
    /// brackets.
    pub fn exchange_datagrams(&mut self, datagrams: &[Vec<u8>]) -> anyhow::Result<Vec<u8>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect((Ipv4Addr::LOCALHOST, self.port("UDP")?))?;
        let send = |number: u16, text: &[u8]| {
            let mut datagram = number.to_be_bytes().to_vec();
            datagram.extend([0, 0, 0, 1, 0, 0]);
            datagram.extend(text);
            socket.send(&datagram)
        };
        for (number, datagram) in (1..).zip(datagrams) {
            send(number, datagram)?;
        }
        send(LAST, b"mn\r\n")?;
        let mut replies = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = socket.recv(&mut buffer).context("no reply over UDP")?;
            let (frame, text) = buffer[..length].split_at(FRAME_BYTES.min(length));
            if frame.starts_with(&LAST.to_be_bytes()) {
                return Ok(replies);
            }
            replies.push(b'[');
            replies.extend(text);
            replies.push(b']');
        }
    }
}

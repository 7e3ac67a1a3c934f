//! A server behind the circuit.

use super::{ADDRESS, PORT};
use anyhow::{Context, Result, bail};
use glimmer_measure::namespaces::Namespace;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Seek};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until a connection has passed the circuit, which is simulated.
const START_MAX: Duration = Duration::from_secs(120);

/// A process that ends when this is dropped, and when the thread that has started it ends.
#[derive(Debug)]
pub struct Server(Child);

impl Server {
    /// Starts Glimmer, which fills the circuit over its socket: the command `serve` of `program`,
    /// which is this one. Returns when a connection has passed the circuit.
    ///
    /// # Errors
    ///
    /// If it does not start: what it says.
    pub fn glimmer(
        program: &Path,
        slots: usize,
        socket: &Path,
        there: &Namespace,
    ) -> Result<Server> {
        let mut command = Command::new(program);
        command
            .args(["serve", "-u", "root", "-t", "1", "-m", "64"])
            .args(["-U", &PORT.to_string()])
            .arg("--circuit")
            .arg(socket)
            .args(["--accelerate-slots", &slots.to_string()]);
        Server::start(command, there)
    }

    /// Starts memcached, which knows nothing of circuits.
    ///
    /// # Errors
    ///
    /// If it does not start: what it says.
    pub fn memcached(there: &Namespace) -> Result<Server> {
        let mut command = Command::new("memcached");
        command
            .args(["-u", "root", "-t", "1", "-m", "64"])
            .args(["-U", &PORT.to_string()]);
        Server::start(command, there)
    }

    fn start(mut command: Command, there: &Namespace) -> Result<Server> {
        let mut said: File = tempfile::tempfile()?;
        command
            .args(["-l", &ADDRESS.to_string(), "-p", &PORT.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone()?);
        let namespace = there.as_fd().try_clone_to_owned()?;
        let enter = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(())
        };
        // SAFETY: between fork and exec, it makes two system calls and does not allocate.
        unsafe { command.pre_exec(enter) };
        let child = command.spawn();
        let child = child.with_context(|| command.get_program().display().to_string())?;
        let mut server = Server(child);
        let begin = Instant::now();
        while TcpStream::connect((ADDRESS, PORT)).is_err() {
            if begin.elapsed() > START_MAX {
                let name = command.get_program().display();
                bail!("{name} accepts no connections at {ADDRESS}:{PORT}");
            }
            if let Some(status) = server.0.try_wait()? {
                let mut text = String::new();
                said.rewind()?;
                said.read_to_string(&mut text)?;
                let name = command.get_program().display();
                bail!("{name} did not start ({status}): {}", text.trim());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

//! A server for a suite, under memcached's name and on its own port.

use super::BUILT;
use crate::process;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The default address of servers.
pub const HOST: &str = "127.0.0.1";
/// How long a server may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// Which server.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Glimmer.
    Glimmer,
    /// The memcached on the search path, or the one named by `GLIMMER_MEMCACHED`.
    #[default]
    Memcached,
    /// The redis-server on the search path, or the one named by `GLIMMER_REDIS`.
    Redis,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Glimmer => "glimmer",
            Kind::Memcached => "memcached",
            Kind::Redis => "redis",
        })
    }
}

/// A running server. Dropping it stops the server.
pub struct Server {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Server {
    /// Starts a server with these flags and a port, which is any free port unless one is given.
    pub fn start(kind: Kind, flags: &[String], port: Option<u16>) -> anyhow::Result<Server> {
        let folder = folder(kind)?;
        let free = TcpListener::bind((HOST, port.unwrap_or(0)));
        let free = free.with_context(|| format!("port {} is taken", port.unwrap_or(0)))?;
        let port = free.local_addr()?.port();
        drop(free);
        let mut command = process::program(folder.join("memcached"), &["-p", &port.to_string()]);
        if !flags.iter().any(|flag| flag == "-l") {
            command.args(["-l", HOST]);
        }
        let process = command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {kind}"))?;
        let mut server = Server {
            process,
            folder,
            port,
        };
        let deadline = Instant::now() + START_PATIENCE;
        while TcpStream::connect((HOST, port)).is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("{kind} does not start: {status}");
            }
            if Instant::now() > deadline {
                bail!("{kind} does not listen on port {port}");
            }
            sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A search path on which `memcached` is this server, for suites that start servers themselves.
    pub fn path(&self) -> OsString {
        let mut path = OsString::from(&self.folder);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder with an executable called `memcached`.
fn folder(kind: Kind) -> anyhow::Result<PathBuf> {
    let folder = std::path::absolute(Path::new(BUILT).join("bin").join(kind.to_string()))?;
    let executable = folder.join("memcached");
    fs::create_dir_all(&folder)?;
    let _ = fs::remove_file(&executable);
    match kind {
        Kind::Glimmer => {
            let ours = process::target_dir().join("debug/glimmer");
            symlink(std::path::absolute(ours)?, &executable)?;
        }
        Kind::Redis => {
            let theirs = theirs("redis-server", "GLIMMER_REDIS");
            // Of memcached's arguments, those that every server is given.
            let script = format!(
                "#!/bin/sh\nexec {theirs} --port \"$2\" --bind \"$4\" --save '' > /dev/null\n"
            );
            fs::write(&executable, script)?;
            fs::set_permissions(&executable, Permissions::from_mode(0o755))?;
        }
        Kind::Memcached => {
            let theirs = theirs("memcached", "GLIMMER_MEMCACHED");
            // Root must name a user.
            let script = format!(
                "#!/bin/sh\n[ \"$(id -u)\" != 0 ] || set -- -u root \"$@\"\nexec {theirs} \"$@\"\n"
            );
            fs::write(&executable, script)?;
            fs::set_permissions(&executable, Permissions::from_mode(0o755))?;
        }
    }
    Ok(folder)
}

/// Another server's program: the one that a variable names, or the one on the search path.
fn theirs(name: &str, variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        let found = process::find(name);
        found.map_or_else(|| name.into(), |path| path.display().to_string())
    })
}

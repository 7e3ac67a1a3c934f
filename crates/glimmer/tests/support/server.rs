//! A server at a Unix socket.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A server, which ends with its owner.
pub struct Server(pub Child);

impl Server {
    /// Starts `glimmer serve` with these arguments and waits until it listens at the socket.
    pub fn start(socket: &Path, arguments: &[&str]) -> Server {
        let child = Command::new(env!("CARGO_BIN_EXE_glimmer"))
            .args(["serve", "-m", "64"])
            .args(arguments)
            .arg("-s")
            .arg(socket)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server(child);
        while UnixStream::connect(socket).is_err() {
            let ended = server.0.try_wait().unwrap();
            assert!(ended.is_none(), "the server has not started: {ended:?}");
            sleep(Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

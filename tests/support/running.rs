//! A server that runs while a test holds it.

use std::{
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use glimmer_measure::ports::free_ports;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server with one worker on a free port of this machine.
pub struct Running {
    child: Child,
    pub address: String,
}

impl Running {
    /// Starts the program with these arguments beside the address.
    pub fn start(mut program: Command, arguments: &[String]) -> Running {
        let port = free_ports(1).unwrap().to_string();
        let address = format!("127.0.0.1:{port}");
        let child = program
            .args(["serve", "-l", "127.0.0.1", "-p", &port, "-t", "1"])
            .args(["-m", "256"])
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Running { child, address };
        let begin = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

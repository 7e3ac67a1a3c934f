//! A server with the accelerator's model, and a connection of the text protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub fn start(arguments: &[&str]) -> Server {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port().to_string();
        drop(tcp);
        let child = Command::new(env!("CARGO_BIN_EXE_glimmer"))
            .args(["serve", "-l", "127.0.0.1", "-p", &port, "-U", &port])
            .args(["--native-port", "-1", "--accelerate", "model"])
            .args(["--accelerate-slots", "256", "-t", "3", "-m", "12"])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = format!("127.0.0.1:{port}");
        let server = Server { child, address };
        let begin = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            assert!(begin.elapsed() < PATIENCE, "{arguments:?} does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub fn figure(&self, command: &str, name: &str) -> u64 {
        let mut text = Text::connect(self);
        let answer = text.say(&format!("{command}\r\n"), &["END"]);
        let start = format!("STAT {name} ");
        let line = answer.lines().find_map(|line| line.strip_prefix(&start));
        let figure = line.unwrap_or_else(|| panic!("{name} in {answer}"));
        figure.parse().unwrap()
    }
}

/// A connection of the text protocol.
pub struct Text {
    pub stream: TcpStream,
    pub reader: BufReader<TcpStream>,
}

impl Text {
    pub fn connect(server: &Server) -> Text {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Text { stream, reader }
    }

    /// Sends a request, and reads up to a line that begins with one of these words, or the first
    /// one.
    pub fn say(&mut self, request: &str, ends: &[&str]) -> String {
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        loop {
            let start = answer.len();
            let read = self.reader.read_line(&mut answer).unwrap();
            assert!(read > 0, "{request} {answer}");
            let line = &answer[start..];
            if ends.is_empty() || ends.iter().any(|end| line.starts_with(end)) {
                return answer;
            }
        }
    }
}

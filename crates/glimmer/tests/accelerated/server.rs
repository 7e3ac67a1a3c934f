//! A server with an accelerator, and a connection of the text protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use glimmer_measure::ports::free_ports;
use tempfile::NamedTempFile;

/// How long a busy machine may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The port of servers that have a network namespace of their own.
pub const PORT: u16 = 11211;

pub struct Server {
    child: Child,
    /// What it wrote to stderr.
    errors: NamedTempFile,
    /// Where it serves memcached's protocols over TCP.
    pub address: SocketAddr,
    /// Where it serves them over UDP.
    pub udp: Vec<SocketAddr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("the server said: {:#?}", self.lines());
        }
    }
}

impl Server {
    /// A server with the accelerator's model.
    pub fn on_loopback(arguments: &[&str]) -> Server {
        let body = ["--accelerate", "model"];
        let mut server = Server::begin_on_loopback(free_ports(1).unwrap(), body, arguments);
        server.wait().expect("it starts");
        server
    }

    /// A server at a port, without waiting until it serves.
    pub fn begin_on_loopback(port: u16, body: [&str; 2], arguments: &[&str]) -> Server {
        let number = port.to_string();
        let own = ["-l", "127.0.0.1", "-p", &number, "-U", &number];
        let own = [&own[..], &body, arguments].concat();
        Server::spawn(command(&own), vec![([127, 0, 0, 1], port).into()])
    }

    /// Starts a command, such as one that starts the server with fewer rights.
    pub fn spawn(mut command: Command, udp: Vec<SocketAddr>) -> Server {
        let errors = NamedTempFile::new().unwrap();
        let child = command
            .stdout(Stdio::null())
            .stderr(errors.reopen().unwrap())
            .spawn()
            .unwrap();
        let address = udp[0];
        Server {
            child,
            errors,
            address,
            udp,
        }
    }

    /// Waits until it serves.
    ///
    /// # Errors
    ///
    /// Its last line, if it ends.
    pub fn wait(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        // A server that is about to refuse accepts connections for a moment.
        while !self.lines().iter().any(|line| line.contains(" ready on ")) {
            if self.child.try_wait().unwrap().is_some() {
                let lines = self.lines();
                return Err(lines.last().cloned().unwrap_or_default());
            }
            assert!(begin.elapsed() < PATIENCE, "{:?}", self.lines());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What it has written to stderr.
    pub fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.errors.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without a warning.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = self.pid().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        self.child.wait().unwrap()
    }

    /// The address of the first worker's native port.
    pub fn native(&self) -> SocketAddr {
        let lines = self.figures("stats native");
        let port = lines.iter().find_map(|(name, port)| {
            let name = name.strip_prefix("port:")?.strip_suffix(":0")?;
            // At all addresses, or at this one.
            let ip: IpAddr = name.parse().ok()?;
            (ip.is_ipv4() == self.address.is_ipv4()).then(|| port.parse().unwrap())
        });
        SocketAddr::new(self.address.ip(), port.expect("there is a native port"))
    }

    /// All statistics of a command.
    fn figures(&self, command: &str) -> Vec<(String, String)> {
        let mut text = Text::connect(self);
        let answer = text.say(&format!("{command}\r\n"), &["END"]);
        let lines = answer.lines().filter_map(|line| line.strip_prefix("STAT "));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    pub fn figure(&self, command: &str, name: &str) -> u64 {
        let text = self.text_figure(command, name);
        text.parse().unwrap_or_else(|_| panic!("{name} is {text}"))
    }

    pub fn text_figure(&self, command: &str, name: &str) -> String {
        let figures = self.figures(command);
        let figure = figures.iter().find(|(found, _)| found == name);
        let (_, value) = figure.unwrap_or_else(|| panic!("{name} in {figures:?}"));
        value.clone()
    }
}

/// A server's command, with few slots and little memory.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command
        .args(["serve", "--native-port", "-1", "--accelerate-slots", "256"])
        .args(["-t", "3", "-m", "12"])
        .args(arguments);
    command
}

/// A connection of the text protocol.
pub struct Text {
    pub stream: TcpStream,
    pub reader: BufReader<TcpStream>,
}

impl Text {
    pub fn connect(server: &Server) -> Text {
        let stream = TcpStream::connect(server.address).unwrap();
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

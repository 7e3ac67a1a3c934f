//! The connection to the watched server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use glimmer_notation::Location;

/// A server that is silent for this long counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Length of the longest reply. A server that sends more cannot be watched.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// A connection with one request at a time.
pub struct Link {
    reader: BufReader<Box<dyn Stream>>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Link {
    /// Connects.
    pub fn open(server: &Location) -> Result<Link> {
        let stream: Box<dyn Stream> = match server {
            Location::Udp(..) | Location::UdpTrains(..) => {
                bail!("a server is watched over TCP or a Unix socket")
            }
            Location::Tcp(host, port) => {
                let addresses = (host.as_str(), *port).to_socket_addrs();
                let mut last = None;
                let connected = addresses
                    .with_context(|| format!("cannot look up {host}"))?
                    .find_map(|address| {
                        TcpStream::connect_timeout(&address, SILENCE_MAX)
                            .map_err(|error| last = Some(error))
                            .ok()
                    });
                let Some(stream) = connected else {
                    let why = last.map_or("it has no address".to_owned(), |e| e.to_string());
                    bail!("cannot connect to {server}: {why}");
                };
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
            Location::Unix(path) => {
                let stream = UnixStream::connect(path)
                    .with_context(|| format!("cannot connect to {server}"))?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
        };
        Ok(Link {
            reader: BufReader::new(stream),
        })
    }

    /// The statistics that `stats` returns for an argument, in the server's order; `None` if the
    /// server does not know the argument.
    pub fn stats(&mut self, argument: &str) -> Result<Option<Vec<(String, String)>>> {
        let command = format!("stats {argument}");
        self.send(command.trim_end())?;
        let mut figures = Vec::new();
        let mut left = ANSWER_BYTES_MAX;
        loop {
            let line = self.line(&mut left)?;
            if line == "END" {
                return Ok(Some(figures));
            }
            if line == "ERROR" || line.starts_with("CLIENT_ERROR") {
                if argument.is_empty() {
                    bail!("the server answers `stats` with {line}");
                }
                return Ok(None);
            }
            let figure = line.strip_prefix("STAT ").with_context(|| {
                format!("not what a memcached answers: {}", line.escape_debug())
            })?;
            let (name, value) = figure.split_once(' ').unwrap_or((figure, ""));
            figures.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The round-trip time of the smallest request, which touches neither an item nor a statistic
    /// of items.
    pub fn round_trip(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.send("version")?;
        self.line(&mut { ANSWER_BYTES_MAX })?;
        Ok(begin.elapsed())
    }

    fn send(&mut self, command: &str) -> Result<()> {
        let line = format!("{command}\r\n");
        let sent = self.reader.get_mut().write_all(line.as_bytes());
        sent.context("the connection is gone")
    }

    fn line(&mut self, left: &mut u64) -> Result<String> {
        let mut line = String::new();
        let read = self.reader.by_ref().take(*left).read_line(&mut line);
        let read = read.context("the server does not answer")?;
        *left -= read as u64;
        match line.strip_suffix("\r\n") {
            // A terminal would obey them.
            Some(text) if text.contains(char::is_control) => Ok(text.escape_debug().to_string()),
            Some(text) => Ok(text.to_owned()),
            None if *left == 0 => bail!("the answer has no end"),
            None => bail!("the server has closed the connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_terminal_obeys_nothing_that_a_server_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Location::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
        let mut link = Link::open(&server).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let reply = "STAT \u{1b}[2J a\u{9b}b\r\nEND\r\n";
        peer.write_all(reply.as_bytes()).unwrap();
        let figures = link.stats("").unwrap().unwrap();
        assert_eq!(figures, [(r"\u{1b}[2J".to_owned(), r"a\u{9b}b".to_owned())]);
    }
}

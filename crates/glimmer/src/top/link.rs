//! The connection to the server that is watched.

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    path::PathBuf,
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// A server that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Longest answer to one command; a server that sends more is none that can be watched.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// What memcached listens on.
const PORT: u16 = 11211;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host, by name or address, and a port.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("unix: is followed by a path".to_owned()),
                path => Ok(Target::Unix(path.into())),
            };
        }
        // What ends in a bracket or holds several colons is an address of IPv6 without a port.
        let bare = text.matches(':').count() > 1 && !text.contains('[');
        let (host, port) = match text.rsplit_once(':') {
            _ if bare => (format!("[{text}]"), PORT),
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().map_err(|_| format!("{port} is not a port"))?;
                (host.to_owned(), port)
            }
            _ => (text.to_owned(), PORT),
        };
        match host.as_str() {
            "" => Err("a host, or host:port, or unix:path".to_owned()),
            host => Ok(Target::Tcp(format!("{host}:{port}"))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => out.write_str(address),
            Target::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// A connection that is asked one thing at a time.
pub struct Link {
    reader: BufReader<Box<dyn Stream>>,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Link {
    /// Connects.
    pub fn open(target: &Target) -> Result<Link> {
        let stream: Box<dyn Stream> = match target {
            Target::Tcp(address) => {
                let resolved = address.to_socket_addrs();
                let mut last = None;
                let connected = resolved
                    .with_context(|| format!("{address} is no address"))?
                    .find_map(|address| {
                        TcpStream::connect_timeout(&address, SILENCE_MAX)
                            .map_err(|error| last = Some(error))
                            .ok()
                    });
                let Some(stream) = connected else {
                    let why = last.map_or("it has no address".to_owned(), |e| e.to_string());
                    bail!("cannot connect to {address}: {why}");
                };
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
            Target::Unix(path) => {
                let stream = UnixStream::connect(path)
                    .with_context(|| format!("cannot connect to {target}"))?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
        };
        Ok(Link {
            reader: BufReader::new(stream),
        })
    }

    /// The figures that `stats` with an argument answers, in the server's order; nothing if the server does not know the argument.
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

    /// How long the server takes to answer the smallest request there is; it touches no item and no statistic of items.
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
            Some(text) => Ok(text.to_owned()),
            None if *left == 0 => bail!("the answer has no end"),
            None => bail!("the server has closed the connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_as_people_write_them() {
        let tcp = |text: &str| Ok(Target::Tcp(text.to_owned()));
        assert_eq!("cache".parse(), tcp("cache:11211"));
        assert_eq!("cache:11311".parse(), tcp("cache:11311"));
        assert_eq!("10.0.0.1:1".parse(), tcp("10.0.0.1:1"));
        assert_eq!("[::1]:11311".parse(), tcp("[::1]:11311"));
        assert_eq!("[::1]".parse(), tcp("[::1]:11211"));
        assert_eq!("::1".parse(), tcp("[::1]:11211"));
        assert_eq!(
            "unix:/run/c.sock".parse(),
            Ok(Target::Unix("/run/c.sock".into()))
        );
        for wrong in ["", ":1", "cache:port", "cache:70000", "unix:"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }
}

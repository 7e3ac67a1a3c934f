//! A connection with one request at a time.

use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use glimmer_notation::Location;

#[cfg(feature = "tls")]
use crate::sealed::over;
#[cfg(not(feature = "tls"))]
use crate::tls::over;
use crate::{Admission, Speech};

/// Length of the longest reply. A server that sends more is not one that can be asked.
const REPLY_BYTES_MAX: u64 = 4 << 20;

/// Length of the longest line of a reply that has the line for itself.
const LINE_BYTES_MAX: u64 = 16 << 10;

const LINE_END: &[u8] = b"\r\n";

/// What to do where no server is.
pub const ELSEWHERE: &str = "start a server there, or name the one that runs";

/// What to do about a name that is not known.
pub const OTHER_NAME: &str = "check the name, or give an address";

/// A server of pages.
const HTTP_SPOKEN: &str =
    "the server speaks HTTP at this port: name the port that clients of memcached use";

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection with one request at a time.
pub struct Link {
    reader: BufReader<Box<dyn Stream>>,
    /// Whether the server has said anything.
    heard: bool,
    encrypted: bool,
}

impl Link {
    /// Connects, and logs in where that is asked for. A server that is silent for `silence_max`
    /// counts as gone.
    ///
    /// # Errors
    ///
    /// If the server is not there, does not speak TLS as asked, or refuses this client.
    pub fn open(server: &Location, admission: &Admission, silence_max: Duration) -> Result<Link> {
        let cannot = || format!("cannot connect to {server}");
        let mut stream: Box<dyn Stream> = match server {
            Location::Udp(..) | Location::UdpTrains(..) => {
                bail!("this goes over TCP or a Unix socket, and {server} is neither")
            }
            Location::Tcp(host, port) => {
                let stream = tcp(server, (host, *port), silence_max)?;
                match &admission.tls {
                    Some(client) => {
                        let host = admission.host.as_ref().unwrap_or(host);
                        Box::new(over(client, host, stream).with_context(cannot)?)
                    }
                    None => Box::new(stream),
                }
            }
            Location::Unix(path) => {
                ensure!(
                    admission.tls.is_none(),
                    "a Unix socket is not encrypted: leave --tls out"
                );
                let stream = UnixStream::connect(path);
                let stream = stream.map_err(|why| anyhow!("{}: {why}; {ELSEWHERE}", cannot()))?;
                stream.set_read_timeout(Some(silence_max))?;
                stream.set_write_timeout(Some(silence_max))?;
                Box::new(stream)
            }
        };
        if let Some(login) = &admission.login {
            login.say(Speech::Text, &mut *stream).with_context(cannot)?;
        }
        Ok(Link {
            reader: BufReader::new(stream),
            heard: admission.login.is_some(),
            encrypted: admission.tls.is_some(),
        })
    }

    /// Sends a command, and reads the first line of the reply, without its end.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub fn ask(&mut self, command: &str) -> Result<String> {
        self.send(command)?;
        self.line(&mut { REPLY_BYTES_MAX })
    }

    /// The statistics that `stats` returns for an argument, in the server's order; `None` if the
    /// server does not know the argument.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or if what answers has no statistics or does not show them now.
    pub fn stats(&mut self, argument: &str) -> Result<Option<Vec<(String, String)>>> {
        match self.stats_or_refusal(argument)? {
            // No server fails for an argument that it does not know.
            Err(line) if argument.is_empty() || line.starts_with("SERVER_ERROR") => {
                let command = format!("stats {argument}");
                bail!("the server answers `{}` with {line}", command.trim_end())
            }
            told => Ok(told.ok()),
        }
    }

    /// The same, with the line of the server if it does not know the argument, or refuses it.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or if the answer is neither.
    pub fn stats_or_refusal(
        &mut self,
        argument: &str,
    ) -> Result<Result<Vec<(String, String)>, String>> {
        let command = format!("stats {argument}");
        self.send(command.trim_end())?;
        let mut figures = Vec::new();
        let mut left = REPLY_BYTES_MAX;
        loop {
            let line = self.line(&mut left)?;
            if line == "END" {
                return Ok(Ok(figures));
            }
            let is_refusal = |word: &&str| line == *word || line.starts_with(&format!("{word} "));
            if ["ERROR", "CLIENT_ERROR", "SERVER_ERROR"]
                .iter()
                .any(is_refusal)
            {
                return Ok(Err(line));
            }
            let figure = line.strip_prefix("STAT ").with_context(|| {
                format!("not what a memcached answers: {}", line.escape_debug())
            })?;
            let (name, value) = figure.split_once(' ').unwrap_or((figure, ""));
            figures.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.reader.get_mut().write_all(bytes);
        sent.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(error),
            _ => anyhow::Error::new(error).context("the connection is gone"),
        })
    }

    /// Reads one line of a reply as it is, in place of what `line` holds, without its end.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or the line is longer than any that memcached sends.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Result<()> {
        line.clear();
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', line);
        match read {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => line.clear(),
            read => drop(read.map_err(silent)?),
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            bail!(self.ended(line));
        }
        self.hear(line)?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(())
    }

    /// Reads a value of this many bytes and its line end, and appends the value.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or no line end follows the value.
    pub fn read_value(&mut self, bytes: usize, value: &mut Vec<u8>) -> Result<()> {
        let start = value.len();
        let wanted = bytes + LINE_END.len();
        let read = self.reader.by_ref().take(wanted as u64).read_to_end(value);
        let read = read.map_err(silent)?;
        ensure!(read == wanted, "the server has closed the connection");
        ensure!(
            value.ends_with(LINE_END),
            "a value of the server has another length than it says"
        );
        value.truncate(start + bytes);
        Ok(())
    }

    fn send(&mut self, command: &str) -> Result<()> {
        self.send_bytes(format!("{command}\r\n").as_bytes())
    }

    fn line(&mut self, left: &mut u64) -> Result<String> {
        let mut line = String::new();
        let read = self.reader.by_ref().take(*left).read_line(&mut line);
        let read = match read {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            read => read.map_err(silent)?,
        };
        *left -= read as u64;
        match line.strip_suffix("\r\n") {
            Some(text) => {
                self.hear(text.as_bytes())?;
                ensure!(
                    text != "CLIENT_ERROR unauthenticated",
                    "the server wants a login: give --auth-user"
                );
                // A terminal would obey them.
                let is_plain = !text.contains(char::is_control);
                Ok(if is_plain {
                    text.to_owned()
                } else {
                    text.escape_debug().to_string()
                })
            }
            None if *left == 0 => bail!("the answer has no end"),
            None => bail!(self.ended(line.as_bytes())),
        }
    }

    /// Looks at the first line of all to see what is spoken there.
    fn hear(&mut self, line: &[u8]) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.heard, true);
        ensure!(!is_first || !line.starts_with(b"HTTP/"), HTTP_SPOKEN);
        Ok(())
    }

    /// Why a connection may have ended with these bytes.
    fn ended(&self, last: &[u8]) -> &'static str {
        let hint = || crate::hint(last, self.encrypted);
        let hint = (!self.heard).then(hint).flatten();
        hint.unwrap_or("the server has closed the connection")
    }
}

/// Connects to the first address of a name that answers.
fn tcp(server: &Location, name: (&str, u16), silence_max: Duration) -> Result<TcpStream> {
    let mut last = None;
    let mut addresses = name
        .to_socket_addrs()
        .map_err(|why| anyhow!("cannot look up {}: {why}; {OTHER_NAME}", name.0))?;
    let connected = addresses.find_map(|address| {
        let connected = TcpStream::connect_timeout(&address, silence_max);
        connected.map_err(|error| last = Some(error)).ok()
    });
    let Some(stream) = connected else {
        let why = last.map_or("it has no address".to_owned(), |error| error.to_string());
        bail!("cannot connect to {server}: {why}; {ELSEWHERE}");
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence_max))?;
    stream.set_write_timeout(Some(silence_max))?;
    Ok(stream)
}

/// Why nothing has come, or nothing is taken. What waits for too long would block.
fn silent(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            anyhow!("the server does not answer: it hangs, or the machine is overloaded")
        }
        _ => anyhow::Error::new(error).context("the server does not answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, os::unix::net::UnixListener, thread};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A server that answers the first bytes with these and closes, as a location.
    fn saying(reply: &'static [u8]) -> (Location, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 4096]).unwrap();
            peer.write_all(reply).unwrap();
        });
        (Location::Tcp("127.0.0.1".into(), port), server)
    }

    /// What becomes of `stats` with such a reply.
    fn stats(reply: &'static [u8]) -> Result<Option<Vec<(String, String)>>> {
        let (location, server) = saying(reply);
        let mut link = Link::open(&location, &Admission::default(), PATIENCE).unwrap();
        let stats = link.stats("");
        server.join().unwrap();
        stats
    }

    #[test]
    fn a_terminal_obeys_nothing_that_a_server_says() {
        let figures = stats("STAT \u{1b}[2J a\u{9b}b\r\nEND\r\n".as_bytes());
        let figures = figures.unwrap().unwrap();
        assert_eq!(figures, [(r"\u{1b}[2J".to_owned(), r"a\u{9b}b".to_owned())]);
    }

    #[test]
    fn a_client_without_tls_is_told_that_the_server_has_it() {
        for reply in [&b"\x15\x03\x03\0\x02\x02\x46"[..], b""] {
            let error = stats(reply).unwrap_err().to_string();
            assert!(error.contains("give --tls"), "{error}");
        }
        let error = stats(b"STAT a 1\r\n").unwrap_err().to_string();
        assert!(error.contains("has closed"), "{error}");
    }

    #[test]
    fn a_server_that_wants_a_login_is_named_so() {
        let error = stats(b"CLIENT_ERROR unauthenticated\r\n").unwrap_err();
        assert!(error.to_string().contains("--auth-user"), "{error}");
    }

    #[test]
    fn a_server_that_hangs_is_named_so() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let location = Location::Tcp("127.0.0.1".into(), port);
        let silence_max = Duration::from_millis(100);
        let mut link = Link::open(&location, &Admission::default(), silence_max).unwrap();
        let error = link.ask("version").unwrap_err();
        assert!(error.to_string().contains("it hangs"), "{error:#}");
    }

    #[test]
    fn a_server_that_takes_nothing_is_named_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        for location in [
            format!("unix:{}", path.display()).parse().unwrap(),
            Location::Tcp("127.0.0.1".into(), port),
        ] {
            let silence_max = Duration::from_millis(100);
            let mut link = Link::open(&location, &Admission::default(), silence_max).unwrap();
            let error = link.send_bytes(&vec![b'x'; 64 << 20]).unwrap_err();
            assert!(error.to_string().contains("it hangs"), "{error:#}");
        }
    }

    #[test]
    fn a_server_may_refuse_statistics() {
        for refusal in [
            "ERROR",
            "ERROR not allowed",
            "CLIENT_ERROR stats not allowed",
            "SERVER_ERROR over the limit of this user or address",
        ] {
            let (location, server) = saying(format!("{refusal}\r\n").leak().as_bytes());
            let mut link = Link::open(&location, &Admission::default(), PATIENCE).unwrap();
            assert_eq!(link.stats_or_refusal("").unwrap().unwrap_err(), refusal);
            server.join().unwrap();
        }
        for reply in [&b"CLIENT_ERRORS\r\n"[..], b"SERVER_ERROR busy\r\n"] {
            let error = stats(reply).unwrap_err().to_string();
            assert!(error.contains(reply.trim_ascii().escape_ascii().to_string().as_str()));
        }
        let named = |reply: &'static [u8]| {
            let (location, server) = saying(reply);
            let mut link = Link::open(&location, &Admission::default(), PATIENCE).unwrap();
            let stats = link.stats("packets");
            server.join().unwrap();
            stats
        };
        assert_eq!(named(b"CLIENT_ERROR bad command line\r\n").unwrap(), None);
        let error = named(b"SERVER_ERROR busy\r\n").unwrap_err().to_string();
        assert!(
            error.contains("`stats packets` with SERVER_ERROR"),
            "{error}"
        );
    }

    #[test]
    fn a_server_of_pages_is_named_so() {
        let error = stats(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
        assert!(error.to_string().contains("HTTP at this port"), "{error}");
        let figures = stats(b"STAT a 1\r\nSTAT b HTTP/1.1\r\nEND\r\n");
        assert_eq!(figures.unwrap().unwrap().len(), 2);
    }

    #[test]
    fn datagrams_cannot_be_asked() {
        let location = "udp:127.0.0.1".parse().unwrap();
        let error = Link::open(&location, &Admission::default(), PATIENCE).err();
        let error = error.unwrap().to_string();
        assert!(error.contains("TCP"), "{error}");
    }
}

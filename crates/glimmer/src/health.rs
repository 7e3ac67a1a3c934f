//! `glimmer health`: asks a server on this machine how it is, for containers that have no program
//! for that.

use crate::serve::addresses_of_pages;
use anyhow::{Context, anyhow, bail, ensure};
use clap::builder::NonEmptyStringValueParser;
use glimmer_notation::counted;
use glimmer_server::config::HTTP_PORT_DEFAULT;
use std::env::{self, VarError};
use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Ask a running server whether it serves; fails unless it does
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Its address for pages, as --http takes it (default: that of GLIMMER_HTTP, or else 9150)
    #[arg(value_name = "ADDR", value_parser = NonEmptyStringValueParser::new())]
    http: Option<String>,
    /// Whether the process answers at all, and not whether its workers take their turns
    #[arg(long)]
    live: bool,
    /// Seconds to wait for the answer
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "2",
        value_parser = seconds,
    )]
    timeout: u8,
}

/// `--timeout`.
fn seconds(text: &str) -> Result<u8, String> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0);
    seconds.ok_or_else(|| "it must be a whole number of seconds from 1 to 255".to_owned())
}

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 4096;

impl Arguments {
    /// Prints the answer.
    pub fn run(self) -> anyhow::Result<()> {
        let given = match (self.http, env::var("GLIMMER_HTTP")) {
            (Some(given), _) | (None, Ok(given)) => given,
            (None, Err(VarError::NotPresent)) => HTTP_PORT_DEFAULT.to_string(),
            (None, Err(error)) => bail!("GLIMMER_HTTP: {error}"),
        };
        let address = address_of(&given)?;
        let page = if self.live { "/healthz" } else { "/readyz" };
        let within = Duration::from_secs(self.timeout.into());
        let no_answer = |why: &dyn Display| {
            anyhow!(
                "no answer from http://{address}{page}: {why}; name the address that --http \
                     of serve has"
            )
        };
        let answer = ask(address, page, within).map_err(|why| match why.kind() {
            // A read that waits for too long would block.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => anyhow!(
                "no answer from http://{address}{page} within {}: the server hangs, or the \
                     machine is overloaded",
                counted(self.timeout.into(), "second")
            ),
            _ => no_answer(&why),
        })?;
        if !answer.starts_with("HTTP/") {
            return Err(no_answer(&"nobody speaks HTTP there"));
        }
        let cut_off = || no_answer(&"it ends too early");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut_off)?;
        if head.split(' ').nth(1) != Some("200") {
            bail!("http://{address}{page}: {}", body.trim_end());
        }
        if content_length(head).is_none_or(|length| body.len() < length) {
            return Err(cut_off());
        }
        println!("{}", body.trim_end());
        Ok(())
    }
}

/// Where the server has its pages that was started with this `--http`.
fn address_of(given: &str) -> anyhow::Result<SocketAddr> {
    // The command line refuses an empty argument, so it came from the variable.
    ensure!(
        !given.is_empty(),
        "GLIMMER_HTTP is empty: give what --http of serve has, or unset it"
    );
    let addresses = addresses_of_pages(given)
        .map_err(|reason| anyhow!("{given}: {reason}: give what --http of serve has"))?;
    let address = addresses
        .first()
        .context("0 means that the server has no pages: start it with --http")?;
    ensure!(
        address.port() != 0,
        "{given} means that the server chooses the port: give the one that it has"
    );
    Ok(*address)
}

/// What a server answers within this time, up to its end.
fn ask(address: SocketAddr, page: &str, within: Duration) -> io::Result<String> {
    let deadline = Instant::now() + within;
    let mut server = TcpStream::connect_timeout(&address, within)?;
    let request = format!("GET {page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    server.write_all(request.as_bytes())?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 512]);
    while answer.len() < ANSWER_BYTES_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        server.set_read_timeout(Some(left))?;
        match server.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn content_length(head: &str) -> Option<usize> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("Content-Length"));
    found?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A server that sends each client these pieces, and then has no more.
    fn server(pieces: impl Iterator<Item = &'static [u8]> + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            // What was asked is read, so that the end is no reset.
            assert!(client.read(&mut [0; 512]).unwrap() > 0);
            for piece in pieces {
                // The client may have left.
                if client.write_all(piece).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        address
    }

    #[test]
    fn a_server_that_sends_byte_after_byte_does_not_extend_the_time() {
        let address = server(std::iter::repeat(b"x".as_slice()));
        let error = ask(address, "/readyz", Duration::from_millis(200)).unwrap_err();
        let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        assert!(kinds.contains(&error.kind()), "{error}");
    }

    #[test]
    fn an_answer_counts_if_it_is_whole() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nready\n";
        let asked = |end: usize| {
            let address = server(std::iter::once(&whole.as_bytes()[..end]));
            let (http, live, timeout) = (Some(address.to_string()), false, 60);
            Arguments {
                http,
                live,
                timeout,
            }
            .run()
        };
        for end in [8, 13, 17, 35, 38, 40, whole.len() - 1] {
            let error = asked(end).expect_err(&whole[..end]).to_string();
            assert!(error.contains("it ends too early"), "{error}");
        }
        asked(whole.len()).unwrap();
    }

    #[test]
    fn an_address_is_one_that_can_be_asked() {
        assert_eq!(address_of("9150").unwrap().to_string(), "127.0.0.1:9150");
        for (given, words) in [
            ("", "GLIMMER_HTTP is empty"),
            ("0", "the server has no pages"),
            ("-1", "the server chooses the port"),
            ("10.0.0.1:0", "the server chooses the port"),
        ] {
            let error = address_of(given).expect_err(given).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

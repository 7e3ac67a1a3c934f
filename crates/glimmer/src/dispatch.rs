//! `glimmer dispatch`: shows how a running server dispatches requests, or changes it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use glimmer_notation::Location;
use glimmer_server::AccessMode;

/// A server that is silent for this long counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Bytes of a reply, at most.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// Show how a running server dispatches requests, or change that
///
/// With a policy, an access mode or both, the command ends when every worker of the server goes by
/// them. No request is lost, repeated or executed out of order meanwhile, and no item is lost. It
/// then shows the plan, as `stats dispatch` does.
/// The settings of --dispatch-percentile and the like stay those that the server was started with.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    glimmer dispatch\n  \
    glimmer dispatch size-aware\n  \
    glimmer dispatch size-aware:4096 --server cache.example:11211\n  \
    glimmer dispatch --access crew")]
pub struct Arguments {
    /// The policy, as for --dispatch of serve [default: the one in force stays]
    policy: Option<String>,

    /// Who may touch a partition, as for --access of serve [default: it stays]
    #[arg(long, value_name = "MODE")]
    access: Option<AccessMode>,

    /// Where the server listens: HOST:PORT, or unix:PATH
    #[arg(long, short, value_name = "SERVER", default_value_t = Location::default())]
    server: Location,
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut link = connect(&self.server)?;
        if let Some(policy) = &self.policy
            && (policy.is_empty() || policy.contains(|c: char| c.is_whitespace() || c.is_control()))
        {
            bail!("a policy is one word");
        }
        let access = self.access.map(AccessMode::name);
        let wanted: Vec<&str> = self.policy.as_deref().into_iter().chain(access).collect();
        if !wanted.is_empty() {
            let command = format!("dispatch {}", wanted.join(" "));
            let answer = ask(&mut link, &command, |_| true)?;
            match answer.as_str() {
                "OK\n" => {}
                "ERROR\n" => bail!("{} does not know the command dispatch", self.server),
                refusal => {
                    let reason = refusal.trim_end();
                    let reason = reason.strip_prefix("CLIENT_ERROR ").unwrap_or(reason);
                    bail!("{}", self.in_words_of_flags(reason));
                }
            }
        }
        let shown = ask(&mut link, "stats dispatch", |line| {
            !line.starts_with("STAT ")
        })?;
        let lines: Vec<_> = shown
            .lines()
            .filter_map(|line| line.strip_prefix("STAT "))
            .collect();
        if lines.is_empty() {
            bail!(
                "{} does not know stats dispatch: {}",
                self.server,
                shown.trim_end()
            );
        }
        for line in lines {
            println!("{line}");
        }
        Ok(())
    }
}

/// What the server says between the reason of a refusal and the protocol's commands that it would
/// take.
const COMMANDS_FOLLOW: &str = ": change the access mode too";

impl Arguments {
    /// A refusal with the flags that would be taken in place of the protocol's commands.
    fn in_words_of_flags(&self, refusal: &str) -> String {
        let Some((reason, _)) = refusal.split_once(COMMANDS_FOLLOW) else {
            return refusal.to_owned();
        };
        let policy = self.policy.as_deref();
        match (policy, self.access) {
            (None, Some(access)) => format!(
                "{reason}: change the policy too, with glimmer dispatch keyhash --access {access}"
            ),
            _ => format!(
                "{reason}: change the access mode too, with glimmer dispatch {} --access crcw",
                policy.unwrap_or_default()
            ),
        }
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection to a server.
type Link = BufReader<Box<dyn Stream>>;

fn connect(server: &Location) -> anyhow::Result<Link> {
    let failed = || format!("cannot connect to {server}");
    let stream: Box<dyn Stream> = match server {
        Location::Tcp(host, port) => {
            let mut addresses = (host.as_str(), *port)
                .to_socket_addrs()
                .with_context(failed)?;
            let stream = addresses
                .find_map(|address| TcpStream::connect_timeout(&address, SILENCE_MAX).ok());
            let stream = stream.with_context(failed)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            Box::new(stream)
        }
        Location::Unix(path) => {
            let stream = UnixStream::connect(path).with_context(failed)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            Box::new(stream)
        }
        Location::Udp(..) | Location::UdpTrains(..) => {
            bail!("a server is asked over TCP or a Unix socket")
        }
    };
    Ok(BufReader::new(stream))
}

/// Sends a command. Returns the lines of the reply, up to the last one.
fn ask(link: &mut Link, command: &str, is_last: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    link.get_mut()
        .write_all(format!("{command}\r\n").as_bytes())?;
    let mut reply = String::new();
    loop {
        let mut line = String::new();
        let bytes = (link.by_ref().take(REPLY_BYTES_MAX))
            .read_line(&mut line)
            .context("the server does not answer")?;
        if bytes == 0 || reply.len() + bytes > REPLY_BYTES_MAX as usize {
            bail!("the server breaks its reply to `{command}` off");
        }
        reply.push_str(line.trim_end());
        reply.push('\n');
        if is_last(&line) {
            return Ok(reply);
        }
    }
}

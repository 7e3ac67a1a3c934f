//! Values that several commands take, with the same syntax in each.

use std::path::{Path, PathBuf};

use glimmer_notation::{self as notation, Location};

/// The server that a command loads.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadAddress {
    /// Address of the server: HOST, HOST:PORT, unix:PATH, udp:HOST:PORT or udp-trains:HOST:PORT
    /// [default: 127.0.0.1:11211]
    ///
    /// The default port is 11211. --server (-s) names the server, too. With udp:, requests are
    /// plain datagrams with memcached's frames, as existing clients send them. With udp-trains:,
    /// they are segment batches (UDP_SEGMENT).
    #[arg(value_name = "SERVER", conflicts_with = "server")]
    alone: Option<Location>,
    #[arg(long, short, value_name = "SERVER", hide = true)]
    server: Option<Location>,
}

impl LoadAddress {
    /// The server's location.
    pub fn location(&self) -> Location {
        let given = self.alone.as_ref().or(self.server.as_ref());
        given.cloned().unwrap_or_default()
    }
}

/// The server that a command talks to over a connection.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerAddress {
    /// Address of the server: HOST, HOST:PORT or unix:PATH [default: 127.0.0.1:11211]
    ///
    /// The default port is 11211. --server (-s) names the server, too.
    #[arg(value_name = "SERVER", conflicts_with = "server", value_parser = connection)]
    alone: Option<Location>,
    #[arg(long, short, value_name = "SERVER", hide = true, value_parser = connection)]
    server: Option<Location>,
}

impl ServerAddress {
    /// The server's location.
    pub fn location(&self) -> Location {
        let given = self.alone.as_ref().or(self.server.as_ref());
        given.cloned().unwrap_or_default()
    }
}

/// A server to which there can be a connection: not one over UDP.
pub fn connection(text: &str) -> Result<Location, String> {
    match text.parse()? {
        Location::Udp(..) | Location::UdpTrains(..) => Err(
            "this goes over TCP or a Unix socket: an address is HOST, HOST:PORT or unix:PATH"
                .to_owned(),
        ),
        location => Ok(location),
    }
}

/// A file to write, of which is known before a measurement whether it can be there after it.
pub fn output(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let folder = match path.parent() {
        Some(folder) if folder != "" => folder,
        _ => Path::new("."),
    };
    if text.is_empty() || path.is_dir() {
        return Err("name a file".to_owned());
    }
    match folder.is_dir() {
        true => Ok(path),
        false => Err(format!("there is no folder {}", folder.display())),
    }
}

/// A core that a thread is bound to.
pub fn core(text: &str) -> Result<usize, String> {
    let core = text.parse();
    core.map_err(|_| "a core is a number, such as 0; `nproc` says how many there are".to_owned())
}

/// A positive count.
pub fn count(text: &str) -> Result<u64, String> {
    notation::within(notation::count, 1..)(text)
}

/// A positive count that fits into 32 bits.
pub fn count_u32(text: &str) -> Result<u32, String> {
    notation::within(notation::count, 1..)(text)
}

/// The number of connections of a load generator.
pub fn connections(text: &str) -> Result<u16, String> {
    notation::within(notation::count, 1..=1000)(text)
}

/// Client threads beside a server with one thread, each with a core of its own.
pub fn client_threads(text: &str) -> Result<usize, String> {
    let threads = notation::within(notation::count, 1..)(text)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let room = (cores - 1).max(1);
    match threads <= room {
        true => Ok(threads),
        false => Err(format!(
            "of the {cores} cores here, a server takes one: at most {room}"
        )),
    }
}

/// The number of repetitions of a measurement.
pub fn repetitions(text: &str) -> Result<u16, String> {
    notation::within(notation::count, 1..=100)(text)
}

/// A memory limit in MiB.
pub fn memory_mib(text: &str) -> Result<usize, String> {
    notation::within(notation::mebibytes, 1..)(text)
}

/// A share in whole percent.
pub fn share_percent(text: &str) -> Result<u32, String> {
    let percent = notation::share(text)? * 100.0;
    match (percent - percent.round()).abs() < 1e-9 && percent >= 1.0 {
        true => Ok(percent.round() as u32),
        false => Err("it must be a share from 0.01 to 1, in steps of 0.01".to_owned()),
    }
}

/// A duration.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number of seconds from 0.1 to 600".to_owned()),
    }
}

/// A rate, a factor or a duration: any positive number.
pub fn above_zero(text: &str) -> Result<f64, String> {
    let number = notation::count(text).map(|count| count as f64);
    let number = number.or_else(|_| text.parse().map_err(|_| ()));
    match number {
        Ok(number) if number > 0.0 && number <= 1e12 => Ok(number),
        _ => Err("it must be a number above 0, such as 0.5, 250 or 10k".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_server_has_memcacheds_port_unless_another_is_given() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            server: LoadAddress,
        }
        for (line, location) in [
            ("x", "127.0.0.1:11211"),
            ("x cache", "cache:11211"),
            ("x --server cache", "cache:11211"),
            ("x -s [::1]:5", "[::1]:5"),
            ("x udp:cache", "udp:cache:11211"),
        ] {
            let line = Line::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(line.server.location().to_string(), location);
        }
        assert!(Line::try_parse_from(["x", "a", "--server", "b"]).is_err());
    }

    #[test]
    fn a_connection_is_not_over_udp() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            server: ServerAddress,
        }
        for (line, location) in [
            ("x", Some("127.0.0.1:11211")),
            ("x -s unix:/run/c.sock", Some("unix:/run/c.sock")),
            ("x udp:cache", None),
            ("x --server udp-trains:cache", None),
        ] {
            let line = Line::try_parse_from(line.split(' ')).ok();
            let parsed = line.map(|line| line.server.location().to_string());
            assert_eq!(parsed.as_deref(), location);
        }
    }

    #[test]
    fn a_file_can_be_written_in_a_folder_that_is_there() {
        let folder = std::env::temp_dir();
        let inside = folder.join("new.json");
        assert_eq!(output(inside.to_str().unwrap()), Ok(inside));
        assert_eq!(output("new.json"), Ok("new.json".into()));
        for wrong in [folder.to_str().unwrap(), "", "/no/such/folder/new.json"] {
            assert!(output(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_in_hundredths() {
        assert_eq!(
            ["0.95", "0.29", "1"].map(share_percent),
            [95, 29, 100].map(Ok)
        );
        assert!(share_percent("0.005").is_err() && share_percent("0").is_err());
    }

    #[test]
    fn client_threads_leave_the_server_its_core() {
        assert_eq!(client_threads("1"), Ok(1));
        assert!(client_threads("0").is_err());
        let cores = std::thread::available_parallelism().unwrap().get();
        let error = client_threads(&cores.max(2).to_string()).unwrap_err();
        assert!(error.contains("at most"), "{error}");
    }
}

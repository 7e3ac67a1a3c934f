//! The file named by the environment variable `MEMCACHED_PORT_FILENAME`. It tells which ports were
//! chosen if the server was started on port 0.

use super::files::Place;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::{env, io};

/// Writes the file if it is requested. It appears under its name only when it is complete.
pub fn write_if_wanted(tcp: &[SocketAddr], udp: &[SocketAddr]) -> io::Result<()> {
    match env::var_os("MEMCACHED_PORT_FILENAME") {
        Some(path) => write(Path::new(&path), tcp, udp),
        None => Ok(()),
    }
}

fn write(path: &Path, tcp: &[SocketAddr], udp: &[SocketAddr]) -> io::Result<()> {
    let mut text = String::new();
    for (transport, addresses) in [("TCP", tcp), ("UDP", udp)] {
        for address in addresses {
            let family = if address.is_ipv4() { "INET" } else { "INET6" };
            writeln!(text, "{transport} {family}: {}", address.port()).expect("memory takes it");
        }
    }
    Place::of(path)?.replace(".lck", text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_line_for_each_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ports");
        let address = |text: &str| text.parse().unwrap();
        let tcp = [address("127.0.0.1:11"), address("[::1]:12")];
        write(&path, &tcp, &[address("0.0.0.0:13")]).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "TCP INET: 11\nTCP INET6: 12\nUDP INET: 13\n"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}

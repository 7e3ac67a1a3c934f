//! Values of flags as memcached writes them.

use anyhow::{Context, bail};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// `-U`: only 0.
pub fn no_udp(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) => Ok(0),
        Ok(port) => Err(format!(
            "there is no UDP yet, so nothing can listen on UDP port {port}; leave -U out or give 0"
        )),
        Err(_) => Err("not a port".into()),
    }
}

/// `-m`: MiB, returned in bytes.
pub fn mebibytes(text: &str) -> Result<usize, String> {
    let mebibytes: usize = text.parse().map_err(|_| "-m takes a whole number of MiB")?;
    match mebibytes.checked_mul(1 << 20) {
        Some(bytes @ 1..) => Ok(bytes),
        _ => Err("-m has to be at least 1 MiB, and less than the address space".into()),
    }
}

/// `-I`: bytes, or with `k` or `m` behind the number.
pub fn item_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "-I takes bytes, or a number with k or m behind it")?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "-I takes at most 1024m".into())
}

/// `-l` and `-p`: every address that the names stand for, or all interfaces if none is given.
pub fn addresses(listen: &[String], port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    if listen.is_empty() {
        return Ok(every_interface(port));
    }
    let mut addresses = Vec::new();
    for text in listen {
        for address in resolve(text, port)
            .with_context(|| format!("-l {text}: not an address to listen on"))?
        {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    Ok(addresses)
}

fn every_interface(port: u16) -> Vec<SocketAddr> {
    let v6 = std::fs::exists("/proc/net/if_inet6").unwrap_or(false);
    let v6 = v6.then_some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    std::iter::once(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        .chain(v6)
        .collect()
}

fn resolve(text: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    if text == "*" {
        return Ok(every_interface(port));
    }
    // An IPv6 address has colons of its own, so a bare one is tried before "host:port".
    if let Ok(ip) = text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
    {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (
            host,
            port.parse()
                .with_context(|| format!("{port:?} is not a port"))?,
        ),
        None => (text, port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if found.is_empty() || port == 0 {
        bail!("{text} has no address");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_sizes() {
        assert_eq!(item_size("1048576"), Ok(1 << 20));
        assert_eq!(item_size("512k"), Ok(512 << 10));
        assert_eq!(item_size("1M"), Ok(1 << 20));
        for wrong in [
            "",
            "k",
            "1.5m",
            "-1",
            "1g",
            "99999999999999999999m",
            "18446744073709551615m",
        ] {
            assert!(item_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_with_and_without_ports() {
        let listen = ["127.0.0.1", "127.0.0.2:3", "::1", "[::1]", "[::1]:4"].map(String::from);
        let expected = ["127.0.0.1:2", "127.0.0.2:3", "[::1]:2", "[::1]:4"]
            .map(|address| address.parse().unwrap());
        assert_eq!(addresses(&listen, 2).unwrap(), expected);
    }

    #[test]
    fn localhost_is_looked_up() {
        let found = addresses(&["localhost".into()], 7).unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 7)
        );
    }

    #[test]
    fn wrong_addresses_are_named() {
        for wrong in ["", ":", "1.2.3.4:port", "127.0.0.1:0"] {
            let error = addresses(&[wrong.into()], 2).expect_err(wrong);
            assert!(
                format!("{error:#}").contains(&format!("-l {wrong}")),
                "{error:#}"
            );
        }
    }
}

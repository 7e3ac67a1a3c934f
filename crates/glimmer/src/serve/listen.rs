//! `-l`: addresses as memcached writes them.

use super::{Port, Refused};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The exit code of memcached when it cannot listen (`EX_OSERR`).
const OS_ERROR: u8 = 71;

/// Every address that the names stand for, or all interfaces if none is given; nothing if the port says so.
pub fn addresses(listen: &[String], port: Port) -> anyhow::Result<Vec<SocketAddr>> {
    let port = match port {
        Port::None => return Ok(Vec::new()),
        Port::Any => 0,
        Port::Number(port) => port,
    };
    if listen.is_empty() {
        return Ok(every_interface(port));
    }
    let mut addresses = Vec::new();
    let names = listen.iter().flat_map(|names| names.split([',', ';']));
    for name in names {
        let found = resolve(name.trim(), port).map_err(|reason| Refused {
            exit_code: OS_ERROR,
            message: format!("-l {name}: not an address to listen on: {reason}"),
        })?;
        // Two free ports on one address are two addresses.
        let is_new = |address: &SocketAddr| address.port() == 0 || !addresses.contains(address);
        let found: Vec<SocketAddr> = found.into_iter().filter(is_new).collect();
        addresses.extend(found);
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

fn resolve(text: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let text = without_tag(text)?;
    if text == "*" {
        return Ok(every_interface(port));
    }
    // An IPv6 address has colons of its own, so a bare one is tried before "host:port".
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (
            host,
            port.parse()
                .map_err(|_| format!("{port:?} is not a port"))?,
        ),
        None => (text, port),
    };
    if host == "*" {
        return Ok(every_interface(port));
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
    match found.as_slice() {
        [] => Err("it has no address".into()),
        _ => Ok(found),
    }
}

/// What follows memcached's `tag[NAME]:` or `tag_NAME_:`. A tag names a listener for memcached's proxy, which is not here.
fn without_tag(text: &str) -> Result<&str, String> {
    if text.starts_with("proto[") {
        return Err("a protocol for one address is not supported; -B sets it for all".into());
    }
    let close = match text.as_bytes() {
        [b't', b'a', b'g', b'[', ..] => ']',
        [b't', b'a', b'g', b'_', ..] => '_',
        _ => return Ok(text),
    };
    match text["tag[".len()..].split_once(close) {
        Some((tag, rest)) if (1..=8).contains(&tag.len()) => {
            Ok(rest.strip_prefix(':').unwrap_or(rest))
        }
        Some(_) => Err("a tag has 1 to 8 characters".into()),
        None => Err("the tag has no end".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(listen: &[&str], port: Port) -> Vec<String> {
        let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
        let found = addresses(&listen, port).unwrap();
        found.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn addresses_with_and_without_ports() {
        let listen = ["127.0.0.1,127.0.0.2:3", "::1", "[::1]:4", "127.0.0.1"];
        let expected = ["127.0.0.1:2", "127.0.0.2:3", "[::1]:2", "[::1]:4"];
        assert_eq!(found(&listen, Port::Number(2)), expected);
        assert_eq!(found(&["127.0.0.1:0;127.0.0.1:0"], Port::Any).len(), 2);
        assert_eq!(found(&["127.0.0.1:5"], Port::None).len(), 0);
    }

    #[test]
    fn tags_are_passed_over() {
        let listen = ["tag[services]:127.0.0.1:3", "tag_tools_:127.0.0.2"];
        let expected = ["127.0.0.1:3", "127.0.0.2:2"];
        assert_eq!(found(&listen, Port::Number(2)), expected);
    }

    #[test]
    fn every_interface_has_an_asterisk() {
        let all = found(&[], Port::Number(2));
        assert_eq!(all[0], "0.0.0.0:2");
        assert_eq!(found(&["*"], Port::Number(2)), all);
        assert_eq!(found(&["*:2"], Port::Number(7)), all);
    }

    #[test]
    fn localhost_is_looked_up() {
        let found = addresses(&["localhost".into()], Port::Number(7)).unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 7)
        );
    }

    #[test]
    fn wrong_addresses_are_named() {
        for wrong in [
            "",
            ":",
            "1.2.3.4:port",
            "proto[ascii]:127.0.0.1",
            "tag[]:::",
            "tag[x",
        ] {
            let error = addresses(&[wrong.into()], Port::Number(2)).expect_err(wrong);
            let refused = error.downcast_ref::<Refused>().expect("a refusal");
            assert_eq!(refused.exit_code, OS_ERROR);
            assert!(
                error.to_string().contains(&format!("-l {wrong}")),
                "{error}"
            );
        }
    }
}

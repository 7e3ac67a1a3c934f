//! `-l`: addresses in memcached's syntax.

use super::Refused;
use super::values::{self, Port};
use glimmer_server::Accepts;
use glimmer_server::config::HTTP_PORT_DEFAULT;
use glimmer_server::encryption::ListenerTls;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// memcached's exit code if it cannot listen (`EX_OSERR`).
pub const OS_ERROR: u8 = 71;

/// Linux has 108 bytes for the path of a socket, and a zero ends it.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// An address, its protocol if the name specifies one, and how its connections are encrypted.
type Listener = (SocketAddr, Option<Accepts>, ListenerTls);

/// Addresses to listen on.
#[derive(Debug, Default)]
pub struct Listeners {
    /// The addresses, each with its port.
    pub addresses: Vec<SocketAddr>,
    /// The protocol that each address's name specifies.
    pub protocols: Vec<Option<Accepts>>,
    /// How the connections at each address are encrypted, if they are.
    pub encryption: Vec<ListenerTls>,
    /// The index of each address's name. All interfaces share one name.
    pub names: Vec<usize>,
}

/// Every address of the given names, or all interfaces if there are none. Empty if the port is 0.
pub fn addresses(listen: &[String], port: Port, has_tls: bool) -> anyhow::Result<Listeners> {
    let port = match port {
        Port::None => return Ok(Listeners::default()),
        Port::Any => 0,
        Port::Number(port) => port,
    };
    let mut listeners = Listeners::default();
    if listen.is_empty() {
        for address in every_interface(port) {
            listeners.add(0, (address, None, ListenerTls::AsSet));
        }
        return Ok(listeners);
    }
    let names = listen.iter().flat_map(|names| names.split([',', ';']));
    // As in memcached, a list may end in a comma. An empty one may be a variable that was not set,
    // and does not stand for all interfaces.
    let names: Vec<&str> = names.filter(|name| !name.trim().is_empty()).collect();
    if names.is_empty() {
        return Err(cannot(format!(
            "-l '{}' names no address; give one, or leave -l out for all interfaces",
            listen.join(",")
        )));
    }
    for (number, name) in names.into_iter().enumerate() {
        let found = listeners_of(name.trim(), port, has_tls).map_err(|reason| {
            cannot(format!(
                "-l {name}: not an address to listen on: {reason}: give an IP address of this \
                 machine, or a name for one"
            ))
        })?;
        for listener in found {
            listeners.add(number, listener);
        }
    }
    Ok(listeners)
}

impl Listeners {
    fn add(&mut self, name: usize, (address, protocol, encryption): Listener) {
        // Two free ports on one address are two addresses.
        if address.port() == 0 || !self.addresses.contains(&address) {
            self.addresses.push(address);
            self.protocols.push(protocol);
            self.encryption.push(encryption);
            self.names.push(name);
        }
    }
}

/// The addresses of one name: `notls:`, `btls:` or `mtls:`, `proto[NAME]:`, then `tag[NAME]:`, then
/// an address. Only the address is required.
fn listeners_of(text: &str, port: u16, has_tls: bool) -> Result<Vec<Listener>, String> {
    let names = ListenerTls::NAMES.iter();
    let named = |&(name, tls): &(&str, _)| Some((tls, text.strip_prefix(name)?.strip_prefix(':')?));
    let (tls, text) = match names.filter_map(named).next() {
        Some(_) if !has_tls => {
            return Err("notls:, btls: and mtls: are for a server with TLS (-Z)".into());
        }
        Some(found) => found,
        None => (ListenerTls::AsSet, text),
    };
    let (protocol, text) = protocol(text)?;
    let found = resolve(text, port)?.into_iter();
    Ok(found.map(|address| (address, protocol, tls)).collect())
}

/// The protocol in memcached's `proto[NAME]:`, and the text after it. The protocol's name may be
/// abbreviated; an unknown one has no effect.
fn protocol(text: &str) -> Result<(Option<Accepts>, &str), String> {
    let Some(rest) = text.strip_prefix("proto[") else {
        return Ok((None, text));
    };
    let (name, rest) = rest.split_once(']').ok_or("proto[ is not closed")?;
    let is_named = |of: &Accepts| *of != Accepts::Any && of.name().starts_with(name);
    let named = Accepts::ALL.iter().copied().find(is_named);
    let protocol = match name {
        _ if named.is_some() => named,
        _ if "negotiating".starts_with(name) => Some(Accepts::Any),
        _ if "proxy".starts_with(name) => return Err("the proxy is not supported".into()),
        _ => None,
    };
    Ok((protocol, rest.strip_prefix(':').unwrap_or(rest)))
}

/// The same addresses with this port. Ports in `-l` are ignored, because they are for memcached
/// clients.
pub fn at_port(mut addresses: Vec<SocketAddr>, port: Port) -> Vec<SocketAddr> {
    let port = match port {
        Port::None => return Vec::new(),
        Port::Any => 0,
        Port::Number(port) => port,
    };
    addresses
        .iter_mut()
        .for_each(|address| address.set_port(port));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// `--http`: every address of a name. A port alone is one of this machine.
pub fn http(text: &str) -> anyhow::Result<Vec<SocketAddr>> {
    pages(text).map_err(|reason| {
        cannot(format!(
            "--http {text}: not an address to listen on: {reason}: give a port, or an IP address \
             of this machine and a port"
        ))
    })
}

/// The path of `-s`, unless no socket can have it.
pub fn unix_path(path: PathBuf) -> anyhow::Result<PathBuf> {
    let bytes = path.as_os_str().len();
    let reason = if bytes > UNIX_PATH_BYTES_MAX {
        format!(
            "it has {bytes} bytes, and the path of a socket {UNIX_PATH_BYTES_MAX} at most; \
             choose a shorter one"
        )
    } else if path.is_dir() {
        "it is a folder; name a file in it".to_owned()
    } else {
        return Ok(path);
    };
    Err(cannot(format!("-s {}: {reason}", path.display())))
}

fn cannot(message: String) -> anyhow::Error {
    Refused {
        exit_code: OS_ERROR,
        message,
    }
    .into()
}

/// The addresses of a name for pages, as `--http` takes it, or what is wrong with it.
pub fn pages(text: &str) -> Result<Vec<SocketAddr>, String> {
    let local = |port| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    match values::port(text) {
        Ok(Port::None) => Ok(Vec::new()),
        Ok(Port::Any) => Ok(local(0)),
        Ok(Port::Number(port)) => Ok(local(port)),
        // The system takes a number for an address.
        Err(reason) if text.parse::<i64>().is_ok() => Err(reason),
        Err(_) => resolve(text, HTTP_PORT_DEFAULT),
    }
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
    // An IPv6 address contains colons, so a bare address is tried before "host:port".
    if let Ok(ip) = without_brackets(text)?.parse::<IpAddr>() {
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
    let found = (without_brackets(host)?, port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
    match found.as_slice() {
        [] => Err("the name has no address".into()),
        _ => Ok(found),
    }
}

/// An address without the brackets around it, if it has any: those of `[::1]:11211` are around a
/// part of it.
fn without_brackets(text: &str) -> Result<&str, String> {
    let inside = text.strip_prefix('[');
    match (inside, inside.and_then(|it| it.strip_suffix(']'))) {
        (None, _) if text.ends_with(']') => Err("the bracket is not opened".into()),
        (Some(inside), None) if !inside.contains(']') => Err("the bracket is not closed".into()),
        (_, Some(address)) => Ok(address),
        _ => Ok(text),
    }
}

/// The text after memcached's `tag[NAME]:` or `tag_NAME_:`. A tag names a listener for memcached's
/// proxy, which this server does not have.
fn without_tag(text: &str) -> Result<&str, String> {
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
        None => Err("the tag is not closed".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(listen: &[&str], port: Port) -> Vec<String> {
        let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
        let found = addresses(&listen, port, false).unwrap();
        let name = |(address, protocol): (&SocketAddr, &Option<Accepts>)| match protocol {
            None => address.to_string(),
            Some(protocol) => format!("{protocol} {address}"),
        };
        found
            .addresses
            .iter()
            .zip(&found.protocols)
            .map(name)
            .collect()
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
    fn empty_names_are_passed_over() {
        for listen in ["127.0.0.1,", ",127.0.0.1", "127.0.0.1,,;127.0.0.1"] {
            assert_eq!(
                found(&[listen], Port::Number(2)),
                ["127.0.0.1:2"],
                "{listen}"
            );
        }
        assert_eq!(found(&["", "127.0.0.1"], Port::Number(2)), ["127.0.0.1:2"]);
    }

    #[test]
    fn native_clients_have_a_port_of_their_own() {
        let listen = ["127.0.0.1:3,127.0.0.1:4,127.0.0.2".to_owned()];
        let found = addresses(&listen, Port::Number(7), false).unwrap();
        let found = at_port(found.addresses, Port::Number(7));
        let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, ["127.0.0.1:7", "127.0.0.2:7"]);
    }

    #[test]
    fn pages_are_for_this_machine_unless_an_address_is_given() {
        let found = |text: &str| {
            let found = http(text).unwrap();
            found.iter().map(SocketAddr::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("9150"), ["127.0.0.1:9150"]);
        assert_eq!(found("-1"), ["127.0.0.1:0"]);
        assert!(found("0").is_empty());
        assert_eq!(found("10.0.0.1"), [format!("10.0.0.1:{HTTP_PORT_DEFAULT}")]);
        assert_eq!(found("[::1]:9"), ["[::1]:9"]);
        assert_eq!(found("*:9")[0], "0.0.0.0:9");
        for wrong in ["", "70000", "1.2.3.4:x", ":9", "[::1"] {
            let error = http(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("--http {wrong}: ")), "{error}");
        }
    }

    #[test]
    fn tags_are_passed_over() {
        let listen = ["tag[services]:127.0.0.1:3", "tag_tools_:127.0.0.2"];
        let expected = ["127.0.0.1:3", "127.0.0.2:2"];
        assert_eq!(found(&listen, Port::Number(2)), expected);
    }

    #[test]
    fn a_protocol_for_one_address() {
        for (name, expected) in [
            ("proto[ascii]:127.0.0.1", "ascii 127.0.0.1:2"),
            (
                "proto[binary]:tag[services]:127.0.0.1:3",
                "binary 127.0.0.1:3",
            ),
            ("proto[negotiating]:tag_tools_:[::1]", "auto [::1]:2"),
            ("proto[bin]:127.0.0.1", "binary 127.0.0.1:2"),
            ("proto[other]:127.0.0.1", "127.0.0.1:2"),
        ] {
            assert_eq!(found(&[name], Port::Number(2)), [expected]);
        }
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
        let found = addresses(&["localhost".into()], Port::Number(7), false).unwrap();
        let is_local = |address: &SocketAddr| address.ip().is_loopback() && address.port() == 7;
        assert!(found.addresses.iter().all(is_local));
        assert!(
            found.names.iter().all(|&name| name == 0),
            "they are one name's"
        );
    }

    #[test]
    fn each_name_has_a_number() {
        let names = |listen: &[&str]| {
            let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
            addresses(&listen, Port::Number(2), false).unwrap().names
        };
        assert_eq!(names(&["127.0.0.1,127.0.0.2", "::1"]), [0, 1, 2]);
        assert!(names(&[]).iter().all(|&name| name == 0));
        assert!(names(&["*"]).iter().all(|&name| name == 0));
    }

    #[test]
    fn wrong_addresses_are_named() {
        assert!(addresses(&[",".into()], Port::Number(2), false).is_err());
        for wrong in [
            "",
            ":",
            "[::1",
            "::1]",
            "[::1:4",
            "::1]:4",
            "[[::1]]",
            "[]",
            "1.2.3.4:port",
            "proto[ascii:127.0.0.1",
            "proto[proxy]:127.0.0.1",
            "notls:127.0.0.1",
            "tag[]:::",
            "tag[x",
        ] {
            let error = addresses(&[wrong.into()], Port::Number(2), false).expect_err(wrong);
            let refused = error.downcast_ref::<Refused>().expect("a refusal");
            assert_eq!(refused.exit_code, OS_ERROR);
            assert!(
                error.to_string().contains(&format!("-l {wrong}")),
                "{error}"
            );
        }
    }
}

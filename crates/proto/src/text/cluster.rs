//! The servers of a cluster, as hosted memcached tells them to clients (auto discovery).
//!
//! An operator stores the same configuration on each server, and clients ask any server for it. The
//! server itself does nothing with it.

use std::net::IpAddr;

use super::number;

/// Length of the longest name of a host, as in DNS.
const HOST_BYTES_MAX: usize = 255;

/// A list of servers with its version, both valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// Clients take the servers over if this is greater than the version that they have.
    version: u64,
    /// `HOST|ADDRESS|PORT` for each server, with white space between them.
    servers: &'a [u8],
}

impl<'a> Cluster<'a> {
    /// Parses a version and at least one server. White space of any kind separates them. `None` if
    /// a part is invalid.
    pub fn parse(text: &'a [u8]) -> Option<Cluster<'a>> {
        let text = text.trim_ascii();
        let end = text.iter().position(u8::is_ascii_whitespace)?;
        let (version, servers) = text.split_at(end);
        let version = number::digits_64(version).filter(|&version| i64::try_from(version).is_ok());
        let cluster = Cluster {
            version: version?,
            servers,
        };
        cluster.each().all(is_server).then_some(cluster)
    }

    /// Appends the configuration as hosted memcached writes it: a line with the version, and a line
    /// with the servers, a space between two of them.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.version.to_string().as_bytes());
        let mut separator = b'\n';
        for server in self.each() {
            out.push(separator);
            out.extend_from_slice(server);
            separator = b' ';
        }
        out.push(b'\n');
    }

    fn each(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let parts = self.servers.split(u8::is_ascii_whitespace);
        parts.filter(|part| !part.is_empty())
    }
}

/// Whether this is `HOST|ADDRESS|PORT`. The address may be missing, as it is while a name has none.
fn is_server(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let mut parts = text.split('|');
    let (Some(host), Some(address), Some(port), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_host = !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.is_ascii();
    let is_host = is_host && !host.contains(|byte: char| byte.is_ascii_control());
    let is_address = address.is_empty() || address.parse::<IpAddr>().is_ok();
    let is_port = !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port > 0);
    is_host && is_address && is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<String> {
        let mut out = Vec::new();
        Cluster::parse(text.as_bytes())?.write(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_configuration_is_written_as_hosted_memcached_writes_it() {
        let hosted = "12\na.example|10.0.0.1|11211 b.example|10.0.0.2|11212\n";
        for text in [
            hosted,
            "12\r\na.example|10.0.0.1|11211\r\nb.example|10.0.0.2|11212\r\n",
            "12 a.example|10.0.0.1|11211  b.example|10.0.0.2|11212",
        ] {
            assert_eq!(written(text).as_deref(), Some(hosted), "{text:?}");
        }
        for text in [
            "0\na||1\n",
            "1\na|::1|65535\n",
            "9223372036854775807\na||1\n",
        ] {
            assert_eq!(written(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for text in [
            "",
            "1",
            "1\n",
            "a|1.2.3.4|11211\n",
            "-1\na||1",
            "9223372036854775808\na||1",
            "1\na",
            "1\na|b|11211",
            "1\n|1.2.3.4|11211",
            "1\na|1.2.3.4|0",
            "1\na|1.2.3.4|+1",
            "1\na|1.2.3.4|65536",
            "1\na|1.2.3.4|1|2",
            "1\na||1 b",
            "1\n\u{e9}||1",
            "1\na\0||1",
        ] {
            assert_eq!(written(text), None, "{text:?}");
        }
        let longest = "h".repeat(HOST_BYTES_MAX);
        assert!(written(&format!("1\n{longest}||1")).is_some());
        assert!(written(&format!("1\n{longest}h||1")).is_none());
    }
}

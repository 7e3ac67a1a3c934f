//! What a client asks for.

use glimmer_base::limits::{HTTP_HEADERS_MAX, HTTP_REQUEST_BYTES_MAX};

use crate::Status;

/// A request without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The path, such as `/metrics`.
    pub path: &'a str,
    /// What follows the question mark, or nothing.
    pub query: &'a str,
    /// The header `Accept`, or nothing.
    pub accept: &'a str,
    /// The header `Host`, or nothing. The host of an absolute target takes its place.
    pub host: &'a str,
    /// The client wants the head of the reply only.
    pub(crate) is_head: bool,
    /// The client may send another request after the reply.
    pub(crate) keeps_alive: bool,
    /// Its version is older than HTTP/1.1, and it takes the connection for closed unless the reply
    /// says otherwise.
    pub(crate) is_old: bool,
}

/// What the bytes of a client are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// The beginning of a request.
    Incomplete,
    /// A request, and its length in bytes.
    Request(Request<'a>, usize),
    /// Something that is refused. The connection is closed.
    Refused(Status),
}

/// Parses the first request.
pub(crate) fn parse(bytes: &[u8]) -> Parsed<'_> {
    let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let used = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) if bytes.len() >= HTTP_REQUEST_BYTES_MAX => {
            return Parsed::Refused(Status::TooLong);
        }
        Ok(httparse::Status::Partial) => return Parsed::Incomplete,
        Err(httparse::Error::TooManyHeaders) => return Parsed::Refused(Status::TooLong),
        Err(_) => return Parsed::Refused(Status::BadRequest),
    };
    let (method, target) = (parsed.method.unwrap_or(""), parsed.path.unwrap_or(""));
    let all = |name: &'static str| {
        let headers = parsed.headers.iter();
        let found = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| std::str::from_utf8(header.value).unwrap_or(""))
    };
    let header = |name| all(name).next();
    if !matches!(method, "GET" | "HEAD") {
        return Parsed::Refused(Status::MethodNotAllowed);
    }
    // No page takes a body, and a body that is not read would be taken for the next request.
    let has_body = all("Content-Length").any(|length| length.trim() != "0");
    if has_body || header("Transfer-Encoding").is_some() {
        return Parsed::Refused(Status::BadRequest);
    }
    // Several lines are one list.
    let says = |word: &str| {
        let mut words = all("Connection").flat_map(|line| line.split(','));
        words.any(|it| it.trim().eq_ignore_ascii_case(word))
    };
    let is_old = parsed.version != Some(1);
    let (host, target) = match absolute(target) {
        Some(parts) => parts,
        None => (header("Host").unwrap_or(""), target),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        path: if path.is_empty() { "/" } else { path },
        query,
        accept: header("Accept").unwrap_or(""),
        host,
        is_head: method == "HEAD",
        keeps_alive: !says("close") && (!is_old || says("keep-alive")),
        is_old,
    };
    Parsed::Request(request, used)
}

/// The host of an absolute target, as a proxy is sent it, and what follows.
fn absolute(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    (scheme.eq_ignore_ascii_case("http") && end > 0).then(|| rest.split_at(end))
}

impl<'a> Request<'a> {
    /// The value of a parameter of the query, as the client wrote it.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether the client names the server as this machine, or by an address. A page of a foreign
    /// site that has its name point at this machine sends that name.
    pub fn names_an_address(&self) -> bool {
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => self.host,
        };
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_address = bare.unwrap_or(host).parse::<std::net::IpAddr>().is_ok();
        is_address || host.eq_ignore_ascii_case("localhost") || host.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request<'_> {
        match parse(text.as_bytes()) {
            Parsed::Request(request, used) => {
                assert_eq!(used, text.len());
                request
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_is_its_path_and_the_headers_that_matter() {
        let found = request("GET /api?a=1&since=2 HTTP/1.1\r\nhost: x:1\r\nACCEPT: b\r\n\r\n");
        assert_eq!((found.path, found.host, found.accept), ("/api", "x:1", "b"));
        assert_eq!(found.parameter("since"), Some("2"));
        assert_eq!(found.parameter("sinc"), None);
        assert!(found.keeps_alive && !found.is_head);
        assert!(!request("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").keeps_alive);
        let lines = "Connection: keep-alive\r\nConnection: close\r\n\r\n";
        for version in ["1.0", "1.1"] {
            assert!(!request(&format!("GET / HTTP/{version}\r\n{lines}")).keeps_alive);
        }
        assert!(!request("GET / HTTP/1.0\r\n\r\n").keeps_alive);
        assert!(request("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keeps_alive);
        assert!(request("HEAD / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").is_head);
    }

    #[test]
    fn an_absolute_target_names_the_host() {
        for (target, expected) in [
            ("http://localhost:9/a?b=1", ("localhost:9", "/a", "b=1")),
            ("HTTP://evil.example", ("evil.example", "/", "")),
            ("http://[::1]?b", ("[::1]", "/", "b")),
            ("/a?b=http://c/d", ("x", "/a", "b=http://c/d")),
            ("https://a/b", ("x", "https://a/b", "")),
        ] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
            let found = request(&text);
            assert_eq!((found.host, found.path, found.query), expected, "{target}");
        }
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let long = format!(
            "GET / HTTP/1.1\r\nA: {}",
            "x".repeat(HTTP_REQUEST_BYTES_MAX)
        );
        let many = "a: b\r\n".repeat(HTTP_HEADERS_MAX + 1);
        let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
        for (text, status) in [
            ("POST / HTTP/1.1\r\n\r\n", Status::MethodNotAllowed),
            (
                "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                Status::BadRequest,
            ),
            (
                "GET / HTTP/1.1\r\nContent-Length: 0\r\ncontent-length: 5\r\n\r\nhello",
                Status::BadRequest,
            ),
            (
                "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Status::BadRequest,
            ),
            ("get greeting\r\n", Status::BadRequest),
            ("\x16\x03\x01", Status::BadRequest),
            (long.as_str(), Status::TooLong),
            (many.as_str(), Status::TooLong),
        ] {
            assert_eq!(parse(text.as_bytes()), Parsed::Refused(status), "{text:?}");
        }
        let whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole.as_bytes()[..end]), Parsed::Incomplete);
        }
    }

    #[test]
    fn only_addresses_and_localhost_name_this_machine() {
        for (host, expected) in [
            ("127.0.0.1:9", true),
            ("[::1]:9", true),
            ("[::1]", true),
            ("LocalHost:80", true),
            ("", true),
            ("cache.example:9", false),
            ("127.0.0.1.example", false),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(request(&text).names_an_address(), expected, "{host}");
        }
    }
}

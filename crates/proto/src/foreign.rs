//! Lines of HTTP and TLS, which are no commands of any protocol here.
//!
//! A web page can make its visitor's browser send a request to any address and port that the
//! browser reaches, with a body of the page's choice. The lines of the body would be executed as
//! commands. So the first line that shows HTTP or TLS closes the connection, as in Redis. A page
//! chooses the body, the path, and by a detour over DNS the method. It does not choose that a
//! `Host:` line comes before the body. A redirect to `https` can put bytes of the page's choice
//! into a TLS hello, but not in front of it.

/// How a TLS client begins: a handshake record of version 3.
const TLS_HELLO: &[u8] = &[0x16, 0x03];

/// Whether a line is the `Host:` of a request, or the beginning of a TLS connection: `first` is its
/// first word.
pub(crate) fn is_foreign(first: &[u8]) -> bool {
    const HOST: &[u8] = b"host:";
    first.starts_with(TLS_HELLO)
        || first
            .get(..HOST.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(HOST))
}

/// Whether a word is the last of the first line of an HTTP request.
pub(crate) fn is_http_version(word: &[u8]) -> bool {
    word.starts_with(b"HTTP/")
}

/// Whether the words of a line are the first line of an HTTP request: a method, a path, `*` or an
/// address, and the version.
pub(crate) fn is_request_line(words: &[&[u8]]) -> bool {
    let &[_, target, version] = words else {
        return false;
    };
    let is_target =
        matches!(target, [b'/', ..] | b"*") || memchr::memmem::find(target, b"://").is_some();
    is_target && is_http_version(version)
}

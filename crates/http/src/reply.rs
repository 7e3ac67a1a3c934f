//! What a client gets.

use std::borrow::Cow;
use std::io::Write;

use crate::{Request, Status};

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: Status,
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// Its content.
    pub body: Cow<'static, [u8]>,
}

/// What a browser may do with a page: run its own script, ask this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

impl Reply {
    /// A line of text.
    pub fn text(status: Status, line: impl Into<String>) -> Reply {
        let mut body = line.into();
        body.push('\n');
        Reply {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into_bytes().into(),
        }
    }

    /// The reply to bytes that are refused.
    pub(crate) fn refusal(status: Status) -> Reply {
        Reply::text(status, status.line())
    }

    /// Appends the reply to a request; `None`: to what was none.
    pub(crate) fn write(&self, request: Option<&Request<'_>>, out: &mut Vec<u8>) {
        let keeps_alive = request.is_some_and(|request| request.keeps_alive);
        write!(
            out,
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Security-Policy: {POLICY}\r\nReferrer-Policy: no-referrer\r\n",
            self.status.line(),
            self.content_type,
            self.body.len(),
        )
        .expect("memory takes every byte");
        if self.status == Status::MethodNotAllowed {
            out.extend_from_slice(b"Allow: GET, HEAD\r\n");
        }
        if !keeps_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if request.is_some_and(|request| request.is_old) {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if !request.is_some_and(|request| request.is_head) {
            out.extend_from_slice(&self.body);
        }
    }
}

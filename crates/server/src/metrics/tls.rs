//! TLS. A server without it has none of these.

use super::Source;
use super::family::{Family, In, Samples};
use crate::encryption::TlsFigures;

/// Samples of what TLS has done.
fn put(source: &Source, out: &mut Samples, put: impl FnOnce(&TlsFigures, &mut Samples)) {
    if let Some(tls) = &source.figures.tls {
        put(tls, out);
    }
}

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_tls_certificate_not_after_timestamp", In::Seconds,
        "Until when the certificate is valid, in seconds since 1970",
        |source, out| put(source, out, |tls, out| out.put(tls.not_after_unix_s as f64))),
    Family::counter("glimmer_tls_handshakes", In::Units,
        "Handshakes, by outcome: with a new session, with one that was resumed, or failed. One \
         that took too long has failed",
        |source, out| put(source, out, |tls, out| {
            out.one("outcome", "new", tls.new_sessions);
            out.one("outcome", "resumed", tls.resumed);
            out.one("outcome", "failed", tls.handshake_errors);
        })),
    Family::counter("glimmer_tls_handshakes_late", In::Units,
        "Handshakes that took too long",
        |source, out| {
            let late = source.figures.node().handshake_kicks;
            put(source, out, |_, out| out.put(late));
        }),
    Family::counter("glimmer_tls_protocol_errors", In::Units,
        "Connections closed because their records were wrong",
        |source, out| put(source, out, |tls, out| out.put(tls.protocol_errors))),
    Family::counter("glimmer_tls_renewals", In::Units,
        "Times that certificates were read again, by outcome",
        |source, out| put(source, out, |tls, out| {
            out.one("outcome", "renewed", tls.renewals);
            out.one("outcome", "failed", tls.renewal_errors);
        })),
    Family::gauge("glimmer_tls_memory", In::Bytes,
        "Memory that encrypted connections take for TLS",
        |source, out| put(source, out, |tls, out| out.put(tls.bytes as u64))),
    Family::gauge("glimmer_tls_memory_limit", In::Bytes,
        "The most memory that they may take for TLS, a part of -m",
        |source, out| put(source, out, |tls, out| out.put(tls.bytes_max as u64))),
    Family::counter("glimmer_tls_memory_kicks", In::Units,
        "Connections closed because all of them took as much as that",
        |source, out| put(source, out, |tls, out| out.put(tls.refusals))),
];

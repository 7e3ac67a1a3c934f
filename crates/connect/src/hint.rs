//! What a broken connection may have been for want of.

/// A server that closes before a client without TLS has heard anything.
const CLOSED_PLAIN: &str = "the server closed the connection before it answered: if it speaks \
                                TLS at this port, give --tls";
/// The same with TLS.
const CLOSED_ENCRYPTED: &str = "the server closed the connection after the TLS handshake: it \
                                    may want a certificate of its clients (--tls-cert and \
                                    --tls-key), or another one";
/// A client without TLS that is answered by an alert.
const TLS_SPOKEN: &str = "the server speaks TLS at this port: give --tls";

/// Whether the first bytes of a reply are an alert or a handshake of TLS.
fn is_tls(reply: &[u8]) -> bool {
    matches!(reply, [0x15 | 0x16, 0x03, ..])
}

/// What is said of a connection that broke before its first reply was complete, if that may be for
/// want of TLS or of a certificate. `reply` is what has arrived.
pub fn hint(reply: &[u8], is_encrypted: bool) -> Option<&'static str> {
    match (reply, is_encrypted) {
        ([], true) => Some(CLOSED_ENCRYPTED),
        ([], false) => Some(CLOSED_PLAIN),
        (reply, false) if is_tls(reply) => Some(TLS_SPOKEN),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_tls_is_recognised() {
        assert!(is_tls(&[0x15, 3, 3, 0, 2, 2, 70]));
        assert!(!is_tls(b"ERROR\r\n") && !is_tls(b"\x15") && !is_tls(b""));
    }
}

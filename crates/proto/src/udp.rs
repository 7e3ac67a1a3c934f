//! The frame of memcached's requests and replies over UDP (protocol.txt, "UDP protocol"): 8 bytes
//! at the front of every datagram.
//!
//! | bytes | content, big-endian |
//! | --- | --- |
//! | 0–1 | request id, chosen by the client and echoed |
//! | 2–3 | sequence number of the datagram within its message |
//! | 4–5 | datagrams of the message |
//! | 6–7 | reserved, zero |

use crate::binary;
use glimmer_base::sync::weakened;

/// Length of the frame's header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Length in bytes of a reply's datagram, including the header, as in memcached.
pub const DATAGRAM_BYTES: usize = 1400;
/// Bytes of a reply that fit into one datagram.
pub const PAYLOAD_BYTES: usize = DATAGRAM_BYTES - HEADER_BYTES;

/// The request id and the request in a datagram. `None` if the datagram is too short, is one of
/// several, or cannot contain a request.
///
/// Every text command begins with a lower-case letter and every binary command with its magic byte.
/// No reply does: text replies begin with capitals or digits, binary replies with a different magic
/// byte. A datagram with a forged source address therefore cannot make two servers, or a server and
/// itself, answer each other for ever: the first reply that arrives as a request is dropped.
/// memcached would answer it.
#[inline]
pub fn request(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let &[id_high, id_low, _, _, 0, 1, _, _, ref request @ ..] = datagram else {
        return None;
    };
    let is_request = |first: &u8| first.is_ascii_lowercase() || *first == binary::MAGIC_REQUEST;
    let may_be_one = request.first().is_some_and(is_request);
    may_be_one.then(|| (u16::from_be_bytes([id_high, id_low]), request))
}

/// Divides a reply to request `id` into datagrams. There are at most 65,535 datagrams of
/// [`PAYLOAD_BYTES`] each.
#[inline]
pub fn reply(id: u16, reply: &[u8]) -> impl Iterator<Item = ([u8; HEADER_BYTES], &[u8])> {
    let is_wrong = weakened("reply_to_the_wrong_datagram") && reply.len() % 4 == 1;
    let id = if is_wrong { id.wrapping_sub(1) } else { id };
    let total = reply.len().div_ceil(PAYLOAD_BYTES);
    debug_assert!(total <= usize::from(u16::MAX));
    let payloads = reply.chunks(PAYLOAD_BYTES).enumerate();
    payloads.map(move |(sequence, payload)| {
        let mut header = [0; HEADER_BYTES];
        header[0..2].copy_from_slice(&id.to_be_bytes());
        header[2..4].copy_from_slice(&(sequence as u16).to_be_bytes());
        header[4..6].copy_from_slice(&(total as u16).to_be_bytes());
        (header, payload)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_one_datagram() {
        let datagram = b"\x12\x34\0\0\0\x01\0\0get a\r\n";
        assert_eq!(request(datagram), Some((0x1234, &b"get a\r\n"[..])));
        for wrong in [
            &b""[..],
            b"\0\0\0\0\0\x01\0",
            b"\0\0\0\0\0\x01\0\0",
            b"\0\0\0\0\0\x02\0\0get a\r\n",
            b"\0\0\0\0\x01\x01\0\0get a\r\n",
            b"\0\0\0\0\0\0\0\0get a\r\n",
        ] {
            assert_eq!(request(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_reply_is_no_request() {
        let mut binary = Vec::new();
        let header = binary::Header {
            opcode: binary::opcode::GET,
            opaque: [1, 2, 3, 4],
        };
        binary::emit::error(&mut binary, header, binary::Status::UnknownCommand);
        for reply in [
            &b"ERROR\r\n"[..],
            b"CLIENT_ERROR bad data chunk\r\n",
            b"SERVER_ERROR reply too large for UDP\r\n",
            b"VALUE a 0 1\r\nx\r\nEND\r\n",
            b"END\r\n",
            b"STORED\r\n",
            b"OK\r\n",
            b"12\r\n",
            b"VERSION 1.6.45\r\n",
            b"STAT pid 1\r\nEND\r\n",
            b"HD\r\n",
            b"VA 1 t0\r\nx\r\n",
            b"EN\r\n",
            b"MN\r\n",
            b"\r\n",
            &binary,
        ] {
            let datagram = [b"\0\0\0\0\0\x01\0\0", reply].concat();
            assert_eq!(request(&datagram), None, "{}", reply.escape_ascii());
        }
        let packet = b"\0\0\0\0\0\x01\0\0\x80\x0a";
        assert!(request(packet).is_some());
    }

    #[test]
    fn replies_of_one_and_of_many() {
        let short: Vec<_> = reply(0x1234, b"END\r\n").collect();
        assert_eq!(short, [([0x12, 0x34, 0, 0, 0, 1, 0, 0], &b"END\r\n"[..])]);
        let long = vec![b'x'; 2 * PAYLOAD_BYTES + 1];
        let long: Vec<_> = reply(7, &long).collect();
        let payload_bytes: Vec<_> = long.iter().map(|(_, payload)| payload.len()).collect();
        assert_eq!(payload_bytes, [PAYLOAD_BYTES, PAYLOAD_BYTES, 1]);
        assert_eq!(long[2].0, [0, 7, 0, 2, 0, 3, 0, 0]);
        let exact = vec![b'x'; PAYLOAD_BYTES];
        assert_eq!(reply(7, &exact).count(), 1);
        assert_eq!(reply(7, b"").count(), 0);
    }
}

//! The twin of the packet program: frame in, frame out. It makes the same checks in the same order
//! and writes the same bytes, so that the program can be held against it frame by frame.
//!
//! Any doubt is a pass, and a frame that is passed is unchanged. What is answered is a datagram of
//! memcached's UDP protocol to one of our addresses, with a lone request that [`Request`] accepts.
//!
//! | file | idea |
//! | --- | --- |
//! | `headers` | Ethernet, IP and UDP: the checks, and the way back |
//! | `checksums` | the checksums of a request |
//! | `interface` | which frames are ours, and whom we answer |

mod checksums;
mod headers;
mod interface;

pub use interface::{Interface, Prefix};

use crate::layout::Tally;
use crate::lookup::Reader;
use crate::request::{Reply, Request};
use crate::sums;
use headers::Headers;

/// Bytes of memcached's frame at the front of a datagram.
const FRAME_BYTES: usize = 8;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has become the reply, and leaves where it came from.
    Reply,
    /// It is unchanged, and goes up to the server.
    Pass(Tally),
}

/// Answers a frame in place at this time of CLOCK_MONOTONIC in nanoseconds. Every pass is tallied.
pub fn answer(reader: &Reader, interface: &Interface, now_ns: u64, frame: &mut Vec<u8>) -> Verdict {
    match try_answer(reader, interface, now_ns, frame) {
        Ok(()) => Verdict::Reply,
        Err(passed) => {
            // A reader tallies by itself why it has not answered.
            if matches!(passed, Tally::Foreign | Tally::Malformed | Tally::Source)
                || matches!(passed, Tally::Request | Tally::TooLong)
            {
                reader.tally(passed);
            }
            Verdict::Pass(passed)
        }
    }
}

fn try_answer(
    reader: &Reader,
    interface: &Interface,
    now_ns: u64,
    frame: &mut Vec<u8>,
) -> Result<(), Tally> {
    let headers = Headers::check(frame, interface)?;
    let datagram = headers.payload(frame);
    let &[id_high, id_low, 0, 0, 0, 1, _, _, ref request @ ..] = datagram else {
        return Err(Tally::Request);
    };
    let request = Request::parse(request).ok_or(Tally::Request)?;
    let form = request.form;
    let hit = reader.find(request.key, now_ns)?;
    // A miss needs no look at the checksums: the server's kernel verifies them.
    if !checksums::hold(interface, headers.ip(frame), headers.udp(frame)) {
        return Err(Tally::Malformed);
    }
    let reply = Reply::new(form, hit.peek());
    let datagram_bytes = FRAME_BYTES + reply.bytes();
    let frame_bytes = headers.frame_bytes(datagram_bytes);
    let datagram_bytes_max = reader.memory().control().datagram_bytes_max();
    if datagram_bytes > datagram_bytes_max
        || frame_bytes > interface.frame_bytes_max
        || frame_bytes > frame.len() + interface.growth_bytes_max
        || !interface.fits_path(headers.source, headers.packet_bytes(datagram_bytes))
    {
        return Err(Tally::TooLong);
    }

    let request = frame.clone();
    frame.resize(frame_bytes, 0);
    let payload = &mut frame[headers.bytes()..];
    let (start, place) = payload.split_at_mut(FRAME_BYTES);
    start.copy_from_slice(&[id_high, id_low, 0, 0, 0, 1, 0, 0]);
    let sum = sums::add(sums::of(start), reply.write(place));
    headers.turn_back(frame, sum);
    if hit.finish(form.tally()) {
        return Ok(());
    }
    *frame = request;
    Err(Tally::Torn)
}

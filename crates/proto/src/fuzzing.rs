//! Bodies of the fuzz targets, shared by `fuzz/` (coverage-guided, nightly compiler) and the
//! bounded runs of the test suite.

mod taken;

use crate::resp::lines::INVALIDATE;
use crate::text::login::{self, Login};
use crate::text::{self, After, Limits, Step};
use crate::{
    Accepts, Form, Parser, Request, StoreMode, Verb, binary, credentials, meta, native, udp,
};
use glimmer_base::limits::{ITEM_BYTES_MIN, KEY_BYTES_MAX};

pub use taken::taken_from;

/// A parser's way through a stream: each step with its `used` set to zero, and where in the stream
/// it ended. It ends where the connection is closed, and before a replay. Neighbouring
/// [`Step::Swallowed`] are one, since how a refused value is cut up depends on how it arrives, and
/// so are the [`Step::Queue`] of one command.
pub type Trace<'a> = Vec<(usize, Step<'a>)>;

/// Feeds a stream to a parser of the text protocol; see [`trace_from`].
pub fn trace<'a>(limits: Limits, stream: &'a [u8], pieces: &[usize], patient: bool) -> Trace<'a> {
    let parser = Parser::Text(text::Parser::new(limits));
    trace_from(parser, limits, stream, pieces, patient)
}

/// Feeds a stream to a parser and checks every step on its own.
///
/// The bytes arrive in the given pieces (taken over and over); a patient worker calls again only
/// when it has as many as it was told to wait for.
pub fn trace_from<'a>(
    mut parser: Parser,
    limits: Limits,
    stream: &'a [u8],
    pieces: &[usize],
    patient: bool,
) -> Trace<'a> {
    let mut trace: Trace<'a> = Vec::new();
    let (mut front, mut arrived, mut wanted) = (0, 0, 0);
    for piece in pieces.iter().cycle() {
        arrived = stream.len().min(arrived + piece.max(&1));
        while front + wanted <= arrived || !patient || arrived == stream.len() {
            let input = &stream[front..arrived];
            let before = parser;
            let step = parser.next(input);
            let mut plain = before;
            match plain.next_plain(input) {
                Some((used, request)) => assert_eq!(
                    (Step::Request { used, request }, plain),
                    (step, parser),
                    "both ways to a request agree"
                ),
                None => assert_eq!(plain, before, "the parser is as before"),
            }
            let mut again = before;
            assert_eq!(
                (again.next(input), again),
                (step, parser),
                "a step put back is taken again"
            );
            let Some((used, step)) = without_used(step) else {
                let Step::Need { need, .. } = step else {
                    unreachable!("only Need uses nothing")
                };
                assert!(
                    need > input.len(),
                    "needs {need} bytes, has {}",
                    input.len()
                );
                wanted = need;
                break;
            };
            assert!(
                (used > 0 || parser != before) && used <= input.len(),
                "used {used} of {} bytes",
                input.len()
            );
            check(&limits, &input[..used], step);
            front += used;
            wanted = 0;
            match (trace.last_mut(), step) {
                (Some((end, Step::Swallowed { .. })), Step::Swallowed { .. }) => *end = front,
                (Some(last @ (_, Step::Queue { line: "", .. })), Step::Queue { .. }) => {
                    *last = (front, step);
                }
                (_, step) if ends(&step) => {
                    let end = match replays(&step) {
                        true => front,
                        false => stream.len(),
                    };
                    trace.push((end, step));
                    return trace;
                }
                _ => trace.push((front, step)),
            }
        }
        if arrived == stream.len() {
            break;
        }
    }
    trace
}

/// The parser and the stream after the first [`After::Replay`]: what was kept for it, and the rest
/// of this stream. None if there is no replay.
fn replayed(mut parser: Parser, stream: &[u8]) -> Option<(Parser, Vec<u8>)> {
    let (mut front, mut kept) = (0, Vec::new());
    loop {
        let step = parser.next(&stream[front..]);
        if replays(&step) {
            front += without_used(step)?.0;
            return Some((parser, [&kept, &stream[front..]].concat()));
        }
        let (used, step) = without_used(step)?;
        if let Step::Queue { .. } = step {
            kept.extend_from_slice(&stream[front..front + used]);
        }
        if !parser.queues_apart() {
            kept.clear();
        }
        if ends(&step) {
            return None;
        }
        front += used;
    }
}

fn replays(step: &Step<'_>) -> bool {
    matches!(
        step,
        Step::Answer {
            then: After::Replay,
            ..
        }
    )
}

/// Whether a stream ends with this step, or another one takes its place.
fn ends(step: &Step<'_>) -> bool {
    matches!(
        step,
        Step::Refuse {
            then: After::Close | After::Replay,
            ..
        } | Step::Answer {
            then: After::Close | After::Replay,
            ..
        }
    )
}

/// Any bytes: no panic, every step sound, and the same steps however the bytes arrive. What the
/// input means is told in `fuzz/README.md`.
pub fn text_parser(data: &[u8]) {
    parser(data, Accepts::Text);
}

/// As [`text_parser`], every line with the name of a meta command in front of it.
pub fn meta(data: &[u8]) {
    let Some((control, rest)) = data.split_first() else {
        return;
    };
    let names = [&b"mg "[..], b"ms ", b"md ", b"ma ", b"me "];
    let mut stream = vec![*control];
    for (i, line) in rest.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let name = line.first().map_or(i, |&byte| usize::from(byte));
        stream.extend_from_slice(names[name % names.len()]);
        stream.extend_from_slice(line.get(1..).unwrap_or_default());
    }
    parser(&stream, Accepts::Text);
}

/// As [`text_parser`], for the binary protocol.
pub fn binary(data: &[u8]) {
    parser(data, Accepts::Binary);
}

/// As [`text_parser`], for RESP.
pub fn resp(data: &[u8]) {
    parser(data, Accepts::Resp);
}

/// Any datagram: what is in a frame is parsed as it would be for a client, and what is framed can
/// be put together again.
pub fn udp(data: &[u8]) {
    if let Some((id, request)) = udp::request(data) {
        assert_eq!(id.to_be_bytes(), data[..2]);
        assert!(lies_in(request, data) && !request.is_empty());
        let parser = Parser::new(Limits::default());
        trace_from(parser, Limits::default(), request, &[request.len()], false);
    }
    let mut joined = Vec::new();
    for (sequence, (header, payload)) in udp::reply(7, data).enumerate() {
        let total = data.len().div_ceil(udp::PAYLOAD_BYTES);
        assert_eq!(header[..2], [0, 7]);
        assert_eq!(header[2..4], (sequence as u16).to_be_bytes());
        assert_eq!(header[4..], [(total >> 8) as u8, total as u8, 0, 0]);
        assert!((1..=udp::PAYLOAD_BYTES).contains(&payload.len()));
        joined.extend_from_slice(payload);
    }
    assert_eq!(joined, data);
}

/// Any bytes from a client that has yet to say who it is, or in a file of users. The first byte
/// says which of the two, and in how large pieces the client's bytes arrive.
pub fn login(data: &[u8]) {
    let Some((control, rest)) = data.split_first() else {
        return;
    };
    match control & 3 {
        0 => users(rest),
        1 => {
            if let Some((name, password)) = credentials::plain(rest) {
                assert!(rest.ends_with(password) && !name.contains(&0));
                assert!(lies_in(name, rest) && lies_in(password, rest));
            }
        }
        _ => text_login(rest, usize::from(control >> 2) + 1),
    }
}

fn users(file: &[u8]) {
    let lines = file.split(|&byte| byte == b'\n').count();
    for (index, user) in credentials::users(file).enumerate() {
        assert!(index < lines);
        match user {
            Ok((name, password)) => {
                assert!(lies_in(name, file) && lies_in(password, file));
                assert!(!name.contains(&b':') && !name.contains(&b'\n'));
                assert!(!password.contains(&b'\n'));
            }
            Err(malformed) => assert!((index + 1..=lines).contains(&malformed.line)),
        }
    }
}

/// What a login comes to does not depend on how its bytes arrive.
fn text_login(input: &[u8], piece: usize) {
    let whole = login::read(input);
    for arrived in (0..input.len()).step_by(piece) {
        match login::read(&input[..arrived]) {
            Login::Need { need } => assert!(need > arrived),
            other => {
                assert_eq!(other, whole);
                break;
            }
        }
    }
    match whole {
        Login::Need { need } => assert!(need > input.len()),
        Login::Try {
            used,
            user,
            password,
        } => {
            assert!(used <= input.len() && !user.contains(&b' '));
            assert!(lies_in(user, input) && lies_in(password, input));
        }
        Login::Refuse { used, line } => assert!(used <= input.len() && is_line(line)),
        Login::Close => {}
    }
}

/// Any datagram, as a server and as a client would read it: no panic, everything borrowed from it,
/// and written again byte for byte.
pub fn native(data: &[u8]) {
    native_requests(data);
    native_replies(data);
}

fn native_requests(data: &[u8]) {
    let Some(header) = native::RequestHeader::read(data) else {
        return;
    };
    let (head, mut rest) = data.split_at(native::RequestHeader::BYTES);
    assert_eq!(header.bytes(), head);
    if let Some(fragment) = native::Fragment::read(rest) {
        let mut again = Vec::new();
        fragment.write(&mut again);
        assert_eq!(again, rest);
        assert!(fragment.offset as usize + fragment.data.len() <= fragment.message_bytes as usize);
    }
    while let Some((record, bytes)) = native::Record::read(rest) {
        let mut again = Vec::new();
        record.write(&mut again);
        assert_eq!((again.as_slice(), record.bytes()), (&rest[..bytes], bytes));
        if let Some(request) = record.request() {
            assert!((1..=KEY_BYTES_MAX).contains(&request.key.len()));
            assert!(lies_in(request.key, rest));
            assert_eq!(request.verb.is_read(), !record.opcode().is_mutation());
        }
        rest = &rest[bytes..];
    }
}

fn native_replies(data: &[u8]) {
    let Some(header) = native::ReplyHeader::read(data) else {
        return;
    };
    let (head, mut rest) = data.split_at(native::ReplyHeader::BYTES);
    assert_eq!(header.bytes(), head);
    if let Some(directory) = native::Directory::read(rest) {
        let mut again = Vec::new();
        directory.write(&mut again);
        assert_eq!(native::Directory::read(&again), Some(directory));
    }
    while let Some((reply, bytes)) = native::Reply::read(rest) {
        let mut again = Vec::new();
        reply.write(&mut again);
        // Client flags of zero may be shown, but are not when they are written.
        assert_eq!(
            native::Reply::read(&again),
            Some((reply, again.len())),
            "{rest:?}"
        );
        assert!(reply.value.is_empty() || lies_in(reply.value, rest));
        rest = &rest[bytes..];
    }
}

fn parser(data: &[u8], accepts: Accepts) {
    let Some((control, stream)) = data.split_first() else {
        return;
    };
    let limits = match control & 0x80 {
        0 => Limits::default(),
        _ => Limits {
            item_bytes_max: ITEM_BYTES_MIN,
        },
    };
    let piece = usize::from(control & 0x3F) + 1;
    let patient = control & 0x40 != 0;
    let start = Parser::accepting(accepts, limits);
    let mut next = Some((start, taken::filled(start, stream)));
    while let Some((start, stream)) = &next {
        // A stream that contains large values takes no more steps than another.
        let piece = piece * (1 + stream.len() / data.len());
        let whole = trace_from(*start, limits, stream, &[stream.len()], false);
        let pieces = trace_from(*start, limits, stream, &[piece], patient);
        assert_eq!(whole, pieces, "the steps depend on how the bytes arrive");
        taken_from(*start, stream, &[piece], &whole, |_| true);
        next = replayed(*start, stream);
    }
}

/// How many bytes the step used, and the step without the number; none if it asks for more.
fn without_used(step: Step<'_>) -> Option<(usize, Step<'_>)> {
    Some(match step {
        Step::Need { .. } => return None,
        Step::Request { used, request } => (used, Step::Request { used: 0, request }),
        Step::Admin { used, admin } => (used, Step::Admin { used: 0, admin }),
        Step::Refuse { used, line, then } => (
            used,
            Step::Refuse {
                used: 0,
                line,
                then,
            },
        ),
        Step::Answer {
            used,
            words,
            text,
            then,
        } => (
            used,
            Step::Answer {
                used: 0,
                words,
                text,
                then,
            },
        ),
        Step::Queue { used, line } => (used, Step::Queue { used: 0, line }),
        Step::Swallowed { used } => (used, Step::Swallowed { used: 0 }),
    })
}

/// What holds for every step, whatever was sent.
fn check(limits: &Limits, used: &[u8], step: Step<'_>) {
    match step {
        Step::Request { request, .. } => check_request(limits, used, request),
        Step::Refuse { line, .. } | Step::Queue { line, .. } => assert!(is_line(line)),
        _ => {}
    }
}

fn check_request(limits: &Limits, used: &[u8], request: Request<'_>) {
    let (key, verb) = (request.key, request.verb);
    assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
    assert!(lies_in(key, used));
    request.with_key(|key| assert!((1..=KEY_BYTES_MAX).contains(&key.len())));
    let is_text = matches!(request.form, Form::Text(_) | Form::Meta(_));
    assert!(!is_text || !key.iter().any(|byte| matches!(byte, b' ' | b'\n')));
    match request.form {
        Form::Text(text::Reply { cas, last, quiet }) => {
            let is_retrieval = matches!(verb, Verb::Get | Verb::GetAndTouch { .. });
            assert!(is_retrieval || (last && !cas));
            assert!(!is_retrieval || last || quiet);
        }
        Form::Meta(flags) => check_flags(flags, used, &verb),
        Form::Binary(header) => {
            assert_eq!(used[..2], [binary::MAGIC_REQUEST, header.opcode]);
            assert_eq!(used[12..16], header.opaque);
        }
        Form::Resp(_) => {}
        Form::Native(_) => unreachable!("streams do not speak the native protocol"),
    }
    match verb {
        Verb::Store {
            flags, value, mode, ..
        } => {
            assert!(value.len() <= limits.value_bytes_max(key.len(), flags));
            assert!(lies_in(value, used));
            if is_text {
                assert!(used.ends_with(b"\r\n") && used[..used.len() - 2].ends_with(value));
                assert_eq!(matches!(mode, StoreMode::Cas(_)), holds_word(used, b"cas"));
            } else {
                assert!(used.ends_with(value));
            }
        }
        Verb::Write(write) => {
            assert!(write.value().len() <= limits.value_bytes_max(key.len(), 0));
            assert!(lies_in(write.bytes, used));
            assert!(write.expected().is_none_or(|value| lies_in(value, used)));
        }
        Verb::Append { value } | Verb::Overlay { value, .. } => {
            assert!(value.len() <= limits.value_bytes_max(key.len(), 0));
            assert!(lies_in(value, used));
        }
        Verb::DeleteEqual { value } | Verb::ExpireEqual { value, .. } => {
            assert!(lies_in(value, used));
        }
        Verb::Meta { command, value } => {
            assert!(value.len() <= limits.value_bytes_max(key.len(), 0));
            assert!(value.is_empty() || command == meta::Command::Store && lies_in(value, used));
        }
        _ => {}
    }
}

/// The flags lie in the line, name each letter once, and say the same when they are read again.
fn check_flags(flags: meta::Flags<'_>, used: &[u8], verb: &Verb<'_>) {
    assert!(flags.text.is_empty() || lies_in(flags.text, used));
    let options = flags.options();
    let mut seen = meta::flags::Set::default();
    for (flag, token) in flags.iter() {
        assert!(options.set.has(flag) && seen.insert(flag));
        assert!(flag != b'O' || token.len() < meta::OPAQUE_BYTES_MAX);
    }
    assert!(matches!(
        verb,
        Verb::Get | Verb::Meta { .. } | Verb::Refused { .. }
    ));
}

/// Whether it is a line, or several as RESP's message to forget what is kept is.
fn is_line(line: &str) -> bool {
    line.is_empty() || line.find("\r\n") == Some(line.len() - 2) || line == INVALIDATE
}

/// Whether the part is borrowed from the whole.
fn lies_in(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

/// Whether the command's first word is this one.
fn holds_word(line: &[u8], word: &[u8]) -> bool {
    line.starts_with(word)
}

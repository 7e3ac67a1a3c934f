//! Every outcome as a reply of every protocol.

use super::*;
use crate::meta::{Command, Flags};
use crate::{Form, Refusal, StoreMode, Verb, binary, native};
use binary::opcode;

/// An item whose fields all differ from their defaults.
#[derive(Clone, Copy)]
struct Sample;

impl ItemView for Sample {
    fn flags(&self) -> u32 {
        7
    }

    fn cas(&self) -> u64 {
        9
    }

    fn expiry(&self) -> Expiry {
        Expiry::at_ms(12_000)
    }

    fn value_bytes(&self) -> usize {
        5
    }

    fn append_value(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"value");
    }

    fn append_part(&self, from: usize, bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&b"value"[from..from + bytes]);
    }

    fn heap_bytes(&self) -> usize {
        64
    }

    fn changes_with_read(&self, _now: Moment) -> bool {
        true
    }

    fn state(&self) -> ItemState {
        ItemState {
            has_binary_key: false,
            is_stale: true,
            is_won: false,
        }
    }
}

const NOW: Moment = Moment {
    ms: 10_000,
    epoch_unix_ms: 1_700_000_000_000,
};

/// Every outcome except the one with an item.
fn all() -> [Outcome; 11] {
    [
        Outcome::Miss,
        Outcome::Stored {
            cas: 9,
            value_bytes: 5,
        },
        Outcome::NotStored,
        Outcome::Exists,
        Outcome::NotFound,
        Outcome::Deleted,
        Outcome::Touched { flags: 7, cas: 9 },
        Outcome::Counted(Counted {
            number: 41,
            cas: 9,
            expiry: Expiry::at_ms(12_000),
            is_new: false,
            now: NOW,
        }),
        Outcome::NotANumber,
        Outcome::TooLarge,
        Outcome::OutOfMemory,
    ]
}

fn request<'a>(verb: Verb<'a>, form: Form<'a>) -> Request<'a> {
    Request {
        key: b"key",
        verb,
        form,
    }
}

fn set(mode: StoreMode) -> Verb<'static> {
    Verb::Store {
        mode,
        flags: 0,
        exptime: 0,
        value: b"sent",
    }
}

fn said(request: &Request<'_>, outcome: Outcome) -> String {
    let mut out = Vec::new();
    request.emit(outcome, &mut out);
    out.escape_ascii().to_string()
}

fn shown(request: &Request<'_>, details: Details) -> String {
    let found = Found {
        item: Sample,
        now: NOW,
        details,
    };
    let mut out = Vec::new();
    request.emit(Outcome::Value(found), &mut out);
    out.escape_ascii().to_string()
}

fn text(cas: bool, last: bool, quiet: bool) -> Form<'static> {
    Form::Text(crate::text::Reply { cas, last, quiet })
}

#[test]
fn in_text() {
    let delete = request(Verb::Delete, text(false, true, false));
    let lines = [
        "END\\r\\n",
        "STORED\\r\\n",
        "NOT_STORED\\r\\n",
        "EXISTS\\r\\n",
        "NOT_FOUND\\r\\n",
        "DELETED\\r\\n",
        "TOUCHED\\r\\n",
        "41\\r\\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\\r\\n",
        "SERVER_ERROR object too large for cache\\r\\n",
        "SERVER_ERROR out of memory\\r\\n",
    ];
    for (outcome, line) in all().into_iter().zip(lines) {
        assert_eq!(said(&delete, outcome), line);
    }
    let storing = "SERVER_ERROR out of memory storing object\\r\\n";
    let refused = Verb::Refused {
        reason: Refusal::NoMemory,
    };
    for verb in [set(StoreMode::Set), refused] {
        let request = request(verb, text(false, true, false));
        assert_eq!(said(&request, Outcome::OutOfMemory), storing);
    }
    // An error line in the middle would end the reply to several keys early.
    let touch = Verb::GetAndTouch { exptime: 1 };
    for (last, quiet, line) in [
        (true, false, "SERVER_ERROR out of memory\\r\\n"),
        (false, true, ""),
        (true, true, "END\\r\\n"),
    ] {
        let request = request(touch, text(false, last, quiet));
        assert_eq!(said(&request, Outcome::OutOfMemory), line);
    }
    let quiet = request(Verb::Delete, text(false, true, true));
    assert!(
        all()[1..]
            .iter()
            .all(|outcome| said(&quiet, *outcome).is_empty())
    );
    for (form, reply) in [
        (
            text(false, true, false),
            "VALUE key 7 5\\r\\nvalue\\r\\nEND\\r\\n",
        ),
        (text(true, false, false), "VALUE key 7 5 9\\r\\nvalue\\r\\n"),
    ] {
        assert_eq!(shown(&request(Verb::Get, form), Details::default()), reply);
    }
    let mut out = Vec::new();
    let get = request(Verb::Get, text(false, true, false));
    assert!(get.emit_read(Found::read(Sample, NOW), &mut out) && !out.is_empty());
    let more = request(Verb::Get, text(false, false, false));
    assert_eq!(said(&more, Outcome::Miss), "");
}

/// Status, CAS unique, and the bytes after the header.
fn packet(code: u8, outcome: Outcome) -> Option<(u16, u64, Vec<u8>)> {
    let header = binary::Header {
        opcode: code,
        opaque: *b"opaq",
    };
    let mut out = Vec::new();
    request(Verb::Get, Form::Binary(header)).emit(outcome, &mut out);
    let (head, body) = out.split_first_chunk::<24>()?;
    assert_eq!(
        (head[0], head[1], &head[12..16]),
        (0x81, code, &b"opaq"[..])
    );
    let status = u16::from_be_bytes([head[6], head[7]]);
    let cas = u64::from_be_bytes(*head.last_chunk()?);
    Some((status, cas, body.to_vec()))
}

#[test]
fn in_binary() {
    let packets: [(u16, u64, &[u8]); 11] = [
        (1, 0, b"Not found"),
        (0, 9, b""),
        (5, 0, b"Not stored."),
        (2, 0, b"Data exists for key."),
        (1, 0, b"Not found"),
        (0, 0, b""),
        (0, 9, b"\0\0\0\x07"),
        (0, 9, b"\0\0\0\0\0\0\0\x29"),
        (6, 0, b"Non-numeric server-side value for incr or decr"),
        (3, 0, b"Too large."),
        (0x82, 0, b"Out of memory allocating item"),
    ];
    for (outcome, (status, cas, body)) in all().into_iter().zip(packets) {
        let expected = Some((status, cas, body.to_vec()));
        assert_eq!(packet(opcode::GET, outcome), expected, "{outcome:?}");
        let is_silent = matches!(
            outcome,
            Outcome::Miss | Outcome::Stored { .. } | Outcome::Deleted | Outcome::Counted(_)
        );
        let quietly = packet(opcode::GETQ, outcome);
        assert_eq!(quietly.is_none(), is_silent, "{outcome:?}");
    }
    let status = |code| packet(code, Outcome::NotStored).map(|(status, ..)| status);
    assert_eq!(
        (status(opcode::ADD), status(opcode::REPLACEQ)),
        (Some(2), Some(1))
    );
    let miss = packet(opcode::GETK, Outcome::Miss);
    assert_eq!(miss, Some((1, 0, b"key".to_vec())));
}

#[test]
fn in_meta() {
    let flags = Flags {
        text: b"O1 k c s q",
        base64_key: false,
    };
    let loud = Flags {
        text: b"O1 k c s",
        ..flags
    };
    let meta = |command, flags| {
        let value: &[u8] = match command {
            Command::Store => b"sent",
            _ => b"",
        };
        request(Verb::Meta { command, value }, Form::Meta(flags))
    };
    let said = |command, outcome| said(&meta(command, loud), outcome);
    let stored = Outcome::Stored {
        cas: 9,
        value_bytes: 5,
    };
    assert_eq!(said(Command::Store, stored), "HD O1 kkey c9 s5\\r\\n");
    for (outcome, code) in [
        (Outcome::NotStored, "NS"),
        (Outcome::Exists, "EX"),
        (Outcome::NotFound, "NF"),
    ] {
        let full = format!("{code} O1 kkey c0 s4\\r\\n");
        assert_eq!(said(Command::Store, outcome), full);
        let short = format!("{code} O1 kkey\\r\\n");
        assert_eq!(said(Command::Delete, outcome), short);
        assert_eq!(said(Command::Arithmetic, outcome), short);
    }
    assert_eq!(said(Command::Delete, Outcome::Deleted), "HD O1 kkey\\r\\n");
    assert_eq!(said(Command::Get, Outcome::Miss), "EN O1 kkey\\r\\n");
    assert_eq!(said(Command::Debug, Outcome::Miss), "EN\\r\\n");
    assert_eq!(said(Command::Arithmetic, all()[7]), "HD O1 kkey c9\\r\\n");
    for (command, line) in [
        (
            Command::Store,
            "SERVER_ERROR out of memory storing object\\r\\n",
        ),
        (Command::Get, "SERVER_ERROR out of memory\\r\\n"),
    ] {
        assert_eq!(said(command, Outcome::OutOfMemory), line);
    }
    for (command, outcome) in [
        (Command::Store, stored),
        (Command::Delete, Outcome::Deleted),
        (Command::Get, Outcome::Miss),
        (Command::Arithmetic, all()[7]),
    ] {
        let quiet = meta(command, flags);
        assert_eq!(super::tests::said(&quiet, outcome), "");
    }
    let get = |text: &'static [u8]| {
        let flags = Flags { text, ..flags };
        request(Verb::Get, Form::Meta(flags))
    };
    let details = Details {
        is_new: false,
        wins: true,
        was_fetched: true,
        idle_s: 3,
    };
    for (text, reply) in [
        (
            &b"t T30 t f h l v"[..],
            "VA 5 t2 t30 f7 h1 l3 X W\\r\\nvalue\\r\\n",
        ),
        (b"N30 t", "HD t2 X W\\r\\n"),
        (b"v C9", "HD X W\\r\\n"),
        (b"v C8 s", "VA 5 s5 X W\\r\\nvalue\\r\\n"),
    ] {
        assert_eq!(shown(&get(text), details), reply);
    }
    let new = Details {
        is_new: true,
        ..details
    };
    let mut out = Vec::new();
    assert!(!get(b"v").emit_read(Found::read(Sample, NOW), &mut out) && out.is_empty());
    assert_eq!(shown(&get(b"N30 t"), new), "HD t30 X W\\r\\n");
    assert_eq!(
        shown(&meta(Command::Debug, Flags::NONE), details),
        "ME key exp=2 la=3 cas=9 fetch=yes cls=1 size=64\\r\\n"
    );
}

#[test]
fn in_native() {
    use native::Status;
    let form = |shows_cas| {
        Form::Native(native::Form {
            shows_cas,
            extent: native::Extent::ALL,
        })
    };
    let statuses = [
        Status::NotFound,
        Status::Stored,
        Status::NotFound,
        Status::Exists,
        Status::NotFound,
        Status::Deleted,
        Status::Touched,
        Status::Counted,
        Status::NotANumber,
        Status::TooLarge,
        Status::OutOfMemory,
    ];
    for (outcome, status) in all().into_iter().zip(statuses) {
        for shows_cas in [false, true] {
            let mut out = Vec::new();
            request(set(StoreMode::Replace), form(shows_cas)).emit(outcome, &mut out);
            let (reply, used) = native::Reply::read(&out).unwrap();
            assert_eq!((reply.status, used), (status, out.len()), "{outcome:?}");
            let carries_cas = matches!(status, Status::Stored | Status::Counted);
            assert_eq!(reply.cas, (shows_cas && carries_cas).then_some(9));
            assert_eq!(reply.number, (status == Status::Counted).then_some(41));
        }
    }
    let mut out = Vec::new();
    request(set(StoreMode::Add), form(false)).emit::<NoItem>(Outcome::NotStored, &mut out);
    assert_eq!(native::Reply::read(&out).unwrap().0.status, Status::Exists);
    out.clear();
    let found = Outcome::Value(Found::read(Sample, NOW));
    request(Verb::Get, form(true)).emit(found, &mut out);
    let (reply, _) = native::Reply::read(&out).unwrap();
    assert_eq!(
        (reply.flags, reply.cas, reply.value),
        (7, Some(9), &b"value"[..])
    );
}

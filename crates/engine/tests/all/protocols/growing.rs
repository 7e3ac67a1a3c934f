//! Values that are appended to, from a few bytes to the limit, in each protocol: the lengths, the
//! flags, the expiry and the CAS uniques are as memcached's documents say, wherever the item lies.

use super::binary::packet;
use super::{Server, servers, shown};
use glimmer_proto::binary::opcode;
use glimmer_proto::{Limits, Parser};

/// Bytes that a request appends, of which there are many.
const STEP: usize = 4_001;
/// The longest value of a key of one byte, as the limit of an item is 1 MiB and 32 bytes here.
const LONGEST: usize = (1 << 20) - 17;

fn say(server: &mut Server, request: &str, value: &[u8]) -> String {
    let request = [request.as_bytes(), value, b"\r\n"].concat();
    String::from_utf8(server.say(&request)).unwrap()
}

/// The CAS unique and the value of the key `a`, with its flags and the seconds that it has left.
fn item(server: &mut Server) -> (u64, usize, String) {
    let reply = String::from_utf8(server.say(b"mg a s c f t\r\n")).unwrap();
    let words: Vec<&str> = reply.split_whitespace().collect();
    assert_eq!(words[0], "HD", "{reply}");
    let (length, unique) = (
        words[1][1..].parse().unwrap(),
        words[2][1..].parse().unwrap(),
    );
    (unique, length, words[3..].join(" "))
}

/// Appends by the binary protocol, on a connection of its own.
fn append_binary(server: &mut Server, value: &[u8]) -> Vec<u8> {
    server.parser = Parser::new(Limits::default());
    let reply = server.say(&packet(opcode::APPEND, 0, &[], b"a", value));
    server.parser = Parser::new(Limits::default());
    reply
}

#[test]
fn every_protocol_appends_up_to_the_limit() {
    for (mode, mut server) in servers().into_iter().enumerate() {
        assert_eq!(say(&mut server, "set a 7 100 3\r\n", b"abc"), "STORED\r\n");
        let mut model = b"abc".to_vec();
        let (mut unique, ..) = item(&mut server);
        for nth in 0.. {
            let more = vec![b'a' + (nth % 26) as u8; STEP - nth % 3];
            if model.len() + more.len() > LONGEST {
                break;
            }
            let (bytes, whole) = (more.len(), model.len() + more.len());
            match nth % 3 {
                0 => {
                    let request = format!("append a 1 5 {bytes}\r\n");
                    assert_eq!(say(&mut server, &request, &more), "STORED\r\n");
                }
                1 => {
                    let request = format!("ms a {bytes} MA s F3 T7\r\n");
                    let reply = format!("HD s{whole}\r\n");
                    assert_eq!(say(&mut server, &request, &more), reply);
                }
                _ => {
                    let reply = append_binary(&mut server, &more);
                    assert_eq!((reply.len(), &reply[6..8]), (24, &[0, 0][..]));
                }
            }
            model.extend(more);
            let found = item(&mut server);
            assert!(
                found.0 > unique,
                "the CAS unique of append {nth} is {}",
                found.0
            );
            assert_eq!(
                (found.1, found.2.as_str()),
                (whole, "f7 t100"),
                "mode {mode}"
            );
            unique = found.0;
        }
        // One that would be too long changes nothing.
        let more = vec![b'x'; LONGEST + 60 - model.len()];
        let request = format!("append a 0 0 {}\r\n", more.len());
        assert_eq!(say(&mut server, &request, &more), "NOT_STORED\r\n");
        assert_eq!(
            item(&mut server),
            (unique, model.len(), "f7 t100".to_owned())
        );
        let reply = server.say(b"get a\r\n");
        let value = &reply[reply.len() - 7 - model.len()..reply.len() - 7];
        assert!(value == model, "mode {mode}: {}", shown(&reply[..40]));
        server.wait(101);
        assert_eq!(server.say(b"get a\r\n"), b"END\r\n");
    }
}

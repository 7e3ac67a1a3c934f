//! Replies to commands without a key are made as far as the client takes them, however many are
//! asked for and however long they are.

use crate::support::{Client, Habits, start};
use glimmer_base::limits::{REPLY_BYTES_HIGH, REPORT_BYTES_HIGH};
use glimmer_node::{Node, Tally};
use glimmer_proto::binary::{Header, emit, opcode};

/// Pieces of the longest reply.
const PIECES: usize = 64;
/// What one client that takes nothing may keep the server holding: a reply up to the mark, the
/// piece that crosses it, and as much again, because buffers double.
const HELD_BYTES_MAX: usize = 2 * (REPLY_BYTES_HIGH + 2 * REPORT_BYTES_HIGH);

fn buffer_bytes(node: &Node) -> usize {
    let mut total = Tally::default();
    let tallies = node.figures().tallies();
    tallies.into_iter().for_each(|tally| total += tally);
    total.buffer_bytes as usize
}

/// Has another client be served so often that the server has long done what it can for the first
/// ones. Returns the most bytes of buffers seen meanwhile.
fn most_bytes_meanwhile(node: &Node) -> usize {
    let mut other = Client::connect(node);
    let look = |_| {
        other.expect("mn\r\n", "MN\r\n");
        buffer_bytes(node)
    };
    (0..500).map(look).max().unwrap()
}

fn expect_long(client: &mut Client, pieces: usize) {
    for piece in 0..pieces {
        let line = client.line();
        assert!(
            line.starts_with(&format!("STAT {piece:09} xxx")),
            "{piece}: {:.20}",
            line
        );
        assert!(line.len() > REPORT_BYTES_HIGH - 30);
    }
    client.expect("", format!("STAT argument long {pieces}\r\nEND\r\n"));
}

#[test]
fn unread_control_replies_are_not_made() {
    for workers in [1, 2] {
        let node = start(workers, Habits::EREW);
        let mut idlers: Vec<Client> = (0..8)
            .map(|_| {
                let mut client = Client::connect(&node);
                client.send(format!("stats long {PIECES}\r\n").repeat(256));
                client
            })
            .collect();
        let bytes = most_bytes_meanwhile(&node);
        assert!(
            bytes < (idlers.len() + 1) * HELD_BYTES_MAX,
            "{bytes} bytes of buffers"
        );
        // What was not made at first is made when it is asked for, in order.
        for _ in 0..4 {
            expect_long(&mut idlers[0], PIECES);
        }
    }
}

#[test]
fn many_short_control_replies_stop_at_the_mark() {
    let node = start(1, Habits::EREW);
    let mut client = Client::connect(&node);
    // Each is a single piece, as long as a piece may be.
    client.send("stats long 1\r\n".repeat(200));
    let bytes = most_bytes_meanwhile(&node);
    assert!(bytes < 2 * HELD_BYTES_MAX, "{bytes} bytes of buffers");
    for _ in 0..200 {
        expect_long(&mut client, 1);
    }
    client.expect("mn\r\n", "MN\r\n");
}

#[test]
fn unread_binary_control_replies_are_not_made() {
    let node = start(1, Habits::EREW);
    let mut client = Client::connect(&node);
    let name = format!("long {PIECES}");
    let mut request = vec![0x80, opcode::STAT, 0, name.len() as u8, 0, 0, 0, 0];
    request.extend_from_slice(&(name.len() as u32).to_be_bytes());
    request.extend_from_slice(&[0; 12]);
    request.extend_from_slice(name.as_bytes());
    client.send(request.repeat(256));
    let bytes = most_bytes_meanwhile(&node);
    assert!(bytes < 2 * HELD_BYTES_MAX, "{bytes} bytes of buffers");
    let header = Header {
        opcode: opcode::STAT,
        opaque: [0; 4],
    };
    let mut expected = Vec::new();
    for piece in 0..PIECES {
        let value = "x".repeat(REPORT_BYTES_HIGH - 30);
        emit::stat(
            &mut expected,
            header,
            format!("{piece:09}").as_bytes(),
            value.as_bytes(),
        );
    }
    emit::stat(&mut expected, header, b"argument", name.as_bytes());
    emit::stat(&mut expected, header, b"", b"");
    for _ in 0..3 {
        assert!(
            client.bytes(expected.len()) == expected,
            "packets of one reply"
        );
    }
}

#[test]
fn a_long_reply_is_made_to_its_end_when_the_server_stops() {
    let node = start(1, Habits::EREW);
    let mut client = Client::connect(&node);
    client.send(format!("stats long {PIECES}\r\n"));
    assert!(client.line().starts_with("STAT 000000000 "));
    node.stop();
    for piece in 1..PIECES {
        assert!(client.line().starts_with(&format!("STAT {piece:09} ")));
    }
    client.expect("", format!("STAT argument long {PIECES}\r\nEND\r\n"));
    assert!(client.rest().is_empty());
}

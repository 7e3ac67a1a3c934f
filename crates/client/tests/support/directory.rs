//! The directory of a server with one worker.
#![allow(dead_code, reason = "each test program uses its own part")]

use glimmer_base::Seed;
use glimmer_proto::native::directory::{Access, Direction, Mode};
use glimmer_proto::native::{Directory, Kind, ReplyHeader, RequestHeader};

pub fn of(port: u16) -> Directory {
    Directory {
        token: 99,
        token_s: 3600,
        seed: Seed(5),
        item_bytes_max: 1 << 20,
        partitions: 1,
        mode: Mode::Cache,
        access: Access::Erew,
        direction: Direction::Client,
        mutation_window: 1024,
        begun_s: None,
        ports: vec![port],
    }
}

/// The beginning of a reply to a request, and whether that is all of it: the directory of this
/// version, with the port of its only core.
pub fn begin_reply(header: &RequestHeader, port: u16, version: u32) -> (Vec<u8>, bool) {
    let is_directory = header.kind == Kind::Directory;
    let kind = match is_directory {
        true => Kind::DirectoryReply,
        false => Kind::Replies,
    };
    let head = ReplyHeader::to(header, kind, header.count, version);
    let mut reply = head.bytes().to_vec();
    if is_directory {
        of(port).write(&mut reply);
    }
    (reply, is_directory)
}

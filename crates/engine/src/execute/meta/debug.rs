//! `me`: what is known about an item, for people.

use super::super::Context;
use super::get::idle_s;
use super::ttl_s;
use crate::job::Job;
use glimmer_proto::meta::{Flags, base64};
use glimmer_store::heap::Marks;
use glimmer_store::table::TableWriter;
use std::io::Write;

/// Items of every size are in one class; `stats items` shows the same.
const CLASS: u32 = 1;

pub fn debug<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    _flags: Flags<'_>,
    out: &mut Vec<u8>,
) {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_meta.add(1);
    let was_read = writer.was_read(keyhash, key, now);
    let stored_s = writer.stored_s(keyhash, key, now);
    let Some(item) = writer.find(keyhash, key, now) else {
        out.extend_from_slice(b"EN\r\n");
        return;
    };
    let history = item.history();
    out.extend_from_slice(b"ME ");
    if history.marks.has(Marks::BINARY_KEY) {
        base64::encode(key, out);
    } else {
        out.extend_from_slice(key);
    }
    let ttl = ttl_s(item.expiry(), now).map_or(-1, |seconds| seconds as i64);
    let fetched = was_read || history.marks.has(Marks::FETCHED);
    write!(
        out,
        " exp={ttl} la={} cas={} fetch={} cls={CLASS} size={}\r\n",
        idle_s(&history, stored_s, now),
        item.cas(),
        if fetched { "yes" } else { "no" },
        item.layout().words() * 8,
    )
    .expect("a vector takes every byte");
}

//! Replies to the requests of a batch.

use super::super::admission::note;
use super::super::batch::Entry;
use super::super::completions::{CompletionSlot, RecordedReply};
use super::super::context::RequestContext;
use super::super::digests::Name;
use super::super::outbox::Piece;
use super::{NativeEndpoint, SKIPPED, Settled, Tools, is_done};
use glimmer_base::limits::{NATIVE_MUTATIONS_KEPT, NATIVE_TOKEN_S};
use glimmer_engine::Job;
use glimmer_proto::native::reply::Long;
use glimmer_proto::native::{
    self, DATAGRAM_BYTES_MAX, Directory, Extent, Kind, Record, ReplyHeader, RequestHeader, Status,
    Wanted, fragment, reply,
};
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::packet::RxBatch;
use std::ops::Range;

impl NativeEndpoint {
    /// Puts the replies of a batch on their way, and notes what mutations were answered.
    pub(super) fn reply_to(
        &mut self,
        received: &mut RxBatch,
        settled: &Settled,
        tools: &mut Tools<'_, '_>,
    ) {
        let mut entries = settled.batch.entries.iter();
        let mut done = settled.done.iter();
        let mut start = 0;
        for context in &settled.batch.contexts {
            if context.entries == 1 {
                let entry = entries.next().expect("a datagram has its entries");
                if let Entry::Job { slot, offset } = *entry {
                    let end = done.next().expect("a job has its end").end;
                    let answer = start..end;
                    start = end;
                    self.reply_to_job(received, context, None, (slot, offset), answer, tools);
                } else {
                    let answers = &settled.batch.answers;
                    self.reply_at_once(received, context, entry, answers, tools);
                }
                continue;
            }
            let mut reply = std::mem::take(&mut self.reply);
            reply.clear();
            for left in (0..usize::from(context.entries)).rev() {
                let entry = entries.next().expect("a datagram has its entries");
                let room = DATAGRAM_BYTES_MAX
                    - ReplyHeader::BYTES
                    - reply.len()
                    - left * reply::RECORD_BYTES;
                let answer = match entry {
                    Entry::Job { slot, .. } => {
                        let end = done.next().expect("a job has its end").end;
                        let answer = &self.out[start..end];
                        start = end;
                        note(*slot, answer, &mut tools.held);
                        answer
                    }
                    Entry::Repeated(place) => settled.batch.answers[*place as usize].bytes(),
                    Entry::Settled(status) => &reply::status_bytes(*status),
                    Entry::Directory | Entry::Progress(_) | Entry::HandedOver => {
                        unreachable!("these are their datagrams' only entries")
                    }
                };
                if Long::read(answer).is_none() && answer.len() <= room {
                    reply.extend_from_slice(answer);
                } else {
                    // The client will read the value again.
                    tools.engine.discount(u64::from(is_hit(answer)));
                    let status = match Long::read(answer).is_some() && !context.is_proven {
                        true => Status::NoToken,
                        false => Status::AskAlone,
                    };
                    reply::status(&mut reply, status);
                }
            }
            let header = self.header(context, Kind::Replies);
            if !(self.outbox).put(received, context, &header, &reply, &mut tools.sending) {
                reply.clear();
                (0..context.entries).for_each(|_| reply::status(&mut reply, Status::NoToken));
                self.outbox
                    .put(received, context, &header, &reply, &mut tools.sending);
            }
            self.reply = reply;
        }
    }

    /// Replies to the only request of a datagram, which the engine executed: the request's bytes if
    /// they are not in the datagram, its completion table's slot, the offset that it asked for, and
    /// where its answer is.
    #[inline(always)]
    pub(super) fn reply_to_job(
        &mut self,
        received: &mut RxBatch,
        context: &RequestContext,
        message: Option<&[u8]>,
        (slot, offset): (Option<CompletionSlot>, u32),
        answer: Range<usize>,
        tools: &mut Tools<'_, '_>,
    ) {
        let header = self.header(context, Kind::Replies);
        let bytes = &self.out[answer.clone()];
        if Long::read(bytes).is_some() {
            return self.reply_long(received, context, message, offset, answer, tools);
        }
        note(slot, bytes, &mut tools.held);
        if !(self.outbox).put(received, context, &header, bytes, &mut tools.sending) {
            self.put_status(received, context, Status::NoToken, tools);
        }
    }

    /// Replies with a window of a reply that is longer than a datagram.
    #[cold]
    fn reply_long(
        &mut self,
        received: &mut RxBatch,
        context: &RequestContext,
        message: Option<&[u8]>,
        offset: u32,
        answer: Range<usize>,
        tools: &mut Tools<'_, '_>,
    ) {
        // A read is counted with the first window that its client gets.
        tools
            .engine
            .discount(u64::from(offset > 0 || !context.is_proven));
        if !context.is_proven {
            return self.put_status(received, context, Status::NoToken, tools);
        }
        // The datagram is still as it came: only those before it have been written over.
        let datagram =
            &received.bytes(context.spot.segment_batch())[context.spot.offset as usize..];
        let message = message.unwrap_or(&datagram[RequestHeader::BYTES..]);
        let header = self.header(context, Kind::FragmentReply);
        let peer = &received.peer(context.spot.segment_batch());
        let (Some((record, _)), Some(long)) =
            (Record::read(message), Long::read(&self.out[answer]))
        else {
            return;
        };
        let hasher = &self.admission.rules.hasher;
        let keyhash = hasher.keyhash_in(record.keyhash, record.key);
        let name = Name {
            keyhash: keyhash.0,
            unique: long.unique,
            shows_cas: record.shows_cas,
            message_bytes: long.message_bytes,
        };
        if let Some(digest) = self.digests.get(&name, tools.now.ms) {
            let piece = Piece {
                message_bytes: long.message_bytes,
                digest,
                first: Long::range(Wanted::Window(offset), long.message_bytes as usize).0,
                bytes: long.part,
            };
            return (self.outbox).send_fragments(*peer, &header, &piece, &mut tools.sending);
        }
        // Its digest is that of all of it. The value may be another one by now.
        let mut whole = Vec::new();
        let mut done = [SKIPPED];
        let job = Job {
            keyhash,
            request: Request {
                key: record.key,
                verb: Verb::Get,
                form: Form::Native(native::Form {
                    shows_cas: record.shows_cas,
                    extent: Extent {
                        short_bytes_max: (DATAGRAM_BYTES_MAX - ReplyHeader::BYTES) as u32,
                        long: Wanted::All,
                    },
                }),
            },
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        };
        let outs = std::slice::from_mut(&mut whole);
        tools.engine.run(tools.now, &[job], outs, &mut done);
        tools.engine.discount(u64::from(is_hit(&whole)));
        self.figures.written += whole.len() as u64;
        if !is_done(&done[0]) {
            return self.put_status(received, context, Status::AskOwner, tools);
        }
        let Some(long) = Long::read(&whole) else {
            let header = self.header(context, Kind::Replies);
            (self.outbox).put(received, context, &header, &whole, &mut tools.sending);
            return;
        };
        let digest = fragment::digest(long.part);
        self.figures.hashed += 1;
        let name = Name {
            unique: long.unique,
            message_bytes: long.message_bytes,
            ..name
        };
        self.digests.put(name, digest, tools.now.ms);
        let (first, end) = Long::range(Wanted::Window(offset), long.part.len());
        let piece = Piece {
            message_bytes: long.message_bytes,
            digest,
            first,
            bytes: &long.part[first..end],
        };
        (self.outbox).send_fragments(*peer, &header, &piece, &mut tools.sending);
    }

    /// Replies to the only request of a datagram, which was answered without the engine.
    pub(super) fn reply_at_once(
        &mut self,
        received: &mut RxBatch,
        context: &RequestContext,
        entry: &Entry,
        answers: &[RecordedReply],
        tools: &mut Tools<'_, '_>,
    ) {
        let mut header = self.header(context, Kind::Replies);
        match *entry {
            Entry::Job { .. } => unreachable!("the engine has its answer"),
            Entry::HandedOver => {}
            Entry::Settled(status) => self.put_status(received, context, status, tools),
            Entry::Repeated(place) => {
                let answer = answers[place as usize];
                (self.outbox).put(
                    received,
                    context,
                    &header,
                    answer.bytes(),
                    &mut tools.sending,
                );
            }
            Entry::Progress(next) => {
                header.kind = Kind::Progress;
                (self.outbox).put(
                    received,
                    context,
                    &header,
                    &next.to_le_bytes(),
                    &mut tools.sending,
                );
            }
            Entry::Directory => {
                header.kind = Kind::DirectoryReply;
                let directory = self.directory(received, context, tools);
                self.reply.clear();
                directory.write(&mut self.reply);
                (self.outbox).put(received, context, &header, &self.reply, &mut tools.sending);
            }
        }
    }

    #[cold]
    pub(super) fn put_status(
        &mut self,
        received: &mut RxBatch,
        context: &RequestContext,
        status: Status,
        tools: &mut Tools<'_, '_>,
    ) {
        let bytes = reply::status_bytes(status);
        let head = self.header(context, Kind::Replies);
        self.outbox
            .put(received, context, &head, &bytes, &mut tools.sending);
    }

    #[inline(always)]
    fn header(&self, context: &RequestContext, kind: Kind) -> ReplyHeader {
        ReplyHeader {
            kind,
            count: context.entries,
            directory: self.admission.rules.directory_version,
            sequence: context.sequence,
            timestamp: context.timestamp,
        }
    }

    fn directory(
        &self,
        received: &RxBatch,
        context: &RequestContext,
        tools: &Tools<'_, '_>,
    ) -> Directory {
        let rules = &self.admission.rules;
        let peer = &received.peer(context.spot.segment_batch());
        Directory {
            token: rules.token_key.token(peer, tools.now.ms),
            token_s: NATIVE_TOKEN_S,
            seed: rules.seed,
            item_bytes_max: rules.item_bytes_max as u32,
            partitions: rules.layout.map.partitions() as u16,
            mode: rules.mode,
            access: rules.access(),
            direction: rules.direction,
            mutation_window: NATIVE_MUTATIONS_KEPT,
            begun_s: rules.begun_s(tools.now),
            ports: tools.ports.to_vec(),
        }
    }
}

/// Whether the engine has counted a read with this answer as a hit.
fn is_hit(answer: &[u8]) -> bool {
    Long::read(answer).is_some() || answer.first() == Some(&(Status::Found as u8))
}

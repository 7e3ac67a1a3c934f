//! Parses datagrams in place, and passes each request through admission.

use super::admission::{Admission, Judging, withdraw};
use super::assemblies::{Assemblies, Taken};
use super::batch::{Batch, Entry, Jobs, Wait};
use super::context::{Position, RequestContext, Sender};
use super::token::TokenKey;
use glimmer_base::Moment;
use glimmer_base::limits::BATCH_MAX;
use glimmer_proto::native::{
    DATAGRAM_BYTES_MAX, Fragment, Kind, REQUESTS_MAX, Record, ReplyHeader, RequestHeader, Status,
    directory, reply,
};
use glimmer_transport::address::network;
use glimmer_transport::packet::RxBatch;
use std::net::SocketAddr;

/// Maximum number of datagrams in a batch.
const CONTEXTS_MAX: usize = 64;
/// Maximum number of requests in a batch; some need no engine.
const ENTRIES_MAX: usize = CONTEXTS_MAX + REQUESTS_MAX;

/// A parsed datagram.
#[derive(Clone, Copy)]
struct Opened {
    header: RequestHeader,
    spot: Position,
    bytes: u32,
    is_proven: bool,
}

impl Opened {
    #[inline(always)]
    fn context(&self, entries: u8) -> RequestContext {
        RequestContext {
            sequence: self.header.sequence,
            timestamp: self.header.timestamp,
            spot: self.spot,
            bytes: self.bytes,
            is_proven: self.is_proven,
            entries,
        }
    }

    #[inline(always)]
    fn sender<'p>(&self, peer: &'p SocketAddr) -> Sender<'p> {
        Sender {
            peer,
            client: self.header.client,
            directory: self.header.directory,
            is_proven: self.is_proven,
            requests: self.header.count,
            short_bytes_max: {
                let others = usize::from(self.header.count).saturating_sub(1);
                let taken = ReplyHeader::BYTES + others * reply::RECORD_BYTES;
                let bytes = match self.is_proven {
                    true => DATAGRAM_BYTES_MAX,
                    false => self.bytes as usize,
                };
                bytes.saturating_sub(taken) as u32
            },
        }
    }
}

/// A fragmented request completed by its last fragment.
pub struct Whole {
    pub context: RequestContext,
    pub client: u64,
    pub directory: u32,
    pub message: Vec<u8>,
}

impl Whole {
    /// The sender, as of the last fragment.
    pub fn sender<'p>(&self, peer: &'p SocketAddr) -> Sender<'p> {
        Sender {
            peer,
            client: self.client,
            directory: self.directory,
            is_proven: self.context.is_proven,
            requests: 0,
            short_bytes_max: (DATAGRAM_BYTES_MAX - ReplyHeader::BYTES) as u32,
        }
    }
}

/// Parses datagrams: their requests and senders.
pub struct Decoder {
    token_key: TokenKey,
    pub assemblies: Assemblies,
    pub whole: Option<Whole>,
    /// The last validated token, for segment batches whose datagrams all carry the same one.
    checked: Option<(usize, u64, bool)>,
}

/// The context of parsing.
pub struct Reading<'t, 'd, 'c> {
    pub admission: &'t mut Admission,
    pub judging: Judging<'t, 'd, 'c>,
}

/// Why parsing stops.
enum Stop {
    /// The datagram has to wait for the next batch.
    Before,
    /// The batch must be answered first.
    After,
}

impl Decoder {
    pub fn new(token_key: TokenKey, assemblies: Assemblies) -> Decoder {
        Decoder {
            token_key,
            assemblies,
            whole: None,
            checked: None,
        }
    }

    /// Starts a new burst, and forgets the state of the previous one.
    pub fn begin(&mut self) {
        self.checked = None;
    }

    /// Parses datagrams from `at` on, as many as fit into a batch, and moves `at` after them.
    pub fn read<'a>(
        &mut self,
        received: &'a RxBatch,
        at: &mut Position,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Reading<'_, '_, '_>,
    ) {
        batch.contexts.clear();
        batch.entries.clear();
        batch.answers.clear();
        while at.segment_batch() < received.count() {
            let index = at.segment_batch();
            let (bytes, size) = (received.bytes(index), received.segment_bytes(index));
            let peer = &received.peer(index);
            while (at.offset as usize) < bytes.len() {
                let rest = &bytes[at.offset as usize..];
                let datagram = &rest[..rest.len().min(size)];
                let stop = self.read_one(datagram, (*at, peer, size), batch, jobs, tools);
                if let Some(Stop::Before) = stop {
                    return;
                }
                at.offset += datagram.len() as u32;
                if let Some(Stop::After) = stop {
                    return;
                }
            }
            *at = Position {
                segment_batch: at.segment_batch + 1,
                offset: 0,
            };
        }
    }

    fn read_one<'a>(
        &mut self,
        datagram: &'a [u8],
        (spot, peer, segment_bytes): (Position, &SocketAddr, usize),
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Reading<'_, '_, '_>,
    ) -> Option<Stop> {
        let is_short = datagram.len() <= DATAGRAM_BYTES_MAX;
        let Some(header) = RequestHeader::read(datagram).filter(|_| is_short) else {
            tools.judging.figures.dropped += 1;
            return None;
        };
        let has_room = batch.contexts.len() < CONTEXTS_MAX
            && batch.entries.len() + REQUESTS_MAX <= ENTRIES_MAX
            && jobs.len() + usize::from(header.count).min(REQUESTS_MAX) <= BATCH_MAX;
        // A job that is not executed has what follows it read again, and a fragment must not be: a
        // message that it completes is executed.
        let ends_batch = header.kind == Kind::Fragment && !jobs.is_empty();
        if !has_room || ends_batch {
            return Some(Stop::Before);
        }
        let opened = Opened {
            header,
            spot,
            bytes: datagram.len() as u32,
            is_proven: self.is_proven(spot.segment_batch(), peer, header.token, tools.judging.now),
        };
        let rest = &datagram[RequestHeader::BYTES..];
        match header.kind {
            Kind::Requests if (1..=REQUESTS_MAX).contains(&usize::from(header.count)) => {
                let segment = (peer, datagram, segment_bytes);
                return self.read_requests(&opened, segment, batch, jobs, tools);
            }
            Kind::Directory if datagram.len() >= directory::REPLY_BYTES_MAX => {
                batch.entries.push(Entry::Directory);
            }
            Kind::Fragment if let Some(home) = tools.judging.dispatch.fragments_to => {
                let hand_to = tools.judging.dispatch.hand_to.as_mut();
                let is_handed_over =
                    hand_to.is_some_and(|hand_to| hand_to(home, *peer, datagram, segment_bytes));
                tools.judging.figures.dropped += u64::from(!is_handed_over);
                return None;
            }
            Kind::Fragment => {
                let entry = match Fragment::read(rest) {
                    None => Entry::Settled(Status::Malformed),
                    Some(_) if !opened.is_proven => Entry::Settled(Status::NoToken),
                    Some(fragment) => {
                        match self.take_fragment(&header, peer, &fragment, tools.judging.now) {
                            Taken::Lacks(next) => Entry::Progress(next),
                            Taken::TooLarge => Entry::Settled(Status::TooLarge),
                            Taken::Full => Entry::Settled(Status::Overloaded),
                            Taken::Complete(message) => {
                                self.whole = Some(Whole {
                                    context: opened.context(1),
                                    client: header.client,
                                    directory: header.directory,
                                    message,
                                });
                                return Some(Stop::After);
                            }
                        }
                    }
                };
                if header.count == 0 {
                    return None;
                }
                batch.entries.push(entry);
            }
            _ => {
                tools.judging.figures.dropped += 1;
                return None;
            }
        }
        batch.contexts.push(opened.context(1));
        None
    }

    #[inline]
    fn read_requests<'a>(
        &mut self,
        opened: &Opened,
        segment: (&SocketAddr, &'a [u8], usize),
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Reading<'_, '_, '_>,
    ) -> Option<Stop> {
        let (peer, datagram, _) = segment;
        let sender = opened.sender(peer);
        let mut rest = &datagram[RequestHeader::BYTES..];
        let mut entries = 0;
        while entries < opened.header.count {
            entries += 1;
            // Not copied: wide loads of what was just stored in parts would wait for the stores.
            let read = Record::read(rest);
            let Some((record, bytes)) = &read else {
                batch.entries.push(Entry::Settled(Status::Malformed));
                break;
            };
            rest = &rest[*bytes..];
            let judging = &mut tools.judging;
            let Err(wait) = (tools.admission).judge(sender, record, batch, jobs, judging) else {
                continue;
            };
            if let Wait::Elsewhere(worker) = wait {
                let (admission, dispatch) = (&mut *tools.admission, &mut *judging.dispatch);
                if entries == 1
                    && admission.hand_over(worker, segment, opened.header.count, dispatch)
                {
                    return None;
                }
                admission.refuse(sender, record, batch, judging);
                continue;
            }
            if batch.contexts.is_empty() {
                // The request waits for another one in the same datagram.
                batch.entries.push(Entry::Settled(match wait {
                    Wait::Busy => Status::AskAlone,
                    _ => Status::Malformed,
                }));
                continue;
            }
            let kept = batch.entries.len() + 1 - usize::from(entries);
            withdraw(&batch.entries[kept..], judging.held);
            let is_job = |entry: &&Entry| matches!(entry, Entry::Job { .. });
            let back = batch.entries[kept..].iter().filter(is_job).count();
            jobs.truncate(jobs.len() - back);
            batch.entries.truncate(kept);
            return Some(Stop::Before);
        }
        batch.contexts.push(opened.context(entries));
        None
    }

    fn take_fragment(
        &mut self,
        header: &RequestHeader,
        peer: &SocketAddr,
        fragment: &Fragment<'_>,
        now: Moment,
    ) -> Taken {
        let origin = (network(peer), header.client);
        self.assemblies
            .take(origin, header.sequence, fragment, now.ms)
    }

    #[inline]
    fn is_proven(&mut self, index: usize, peer: &SocketAddr, token: u64, now: Moment) -> bool {
        if let Some((checked, shown, is_proven)) = self.checked
            && (checked, shown) == (index, token)
        {
            return is_proven;
        }
        let is_proven = token != 0 && self.token_key.admits(peer, token, now.ms);
        self.checked = Some((index, token, is_proven));
        is_proven
    }
}

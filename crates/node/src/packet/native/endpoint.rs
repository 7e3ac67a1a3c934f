//! Answers the datagrams of one burst.

mod replies;

use super::admission::{Admission, Dispatch, Judging, note, withdraw};
use super::assemblies::{Assemblies, request_bytes_max};
use super::batch::{Batch, Entry, Jobs, Wait};
use super::completions::{CompletionTables, HeldTables};
use super::context::{Position, RequestContext};
use super::decode::{Decoder, Reading, Whole};
use super::digests::Digests;
use super::figures::NativeFigures;
use super::outbox::{Outbox, Sending};
use super::rules::Rules;
use super::token::TokenKey;
use glimmer_base::limits::{BATCH_MAX, BUFFER_BYTES_KEPT_MAX};
use glimmer_base::{Keyhash, Moment};
use glimmer_dispatch::{Decision, Plan};
use glimmer_engine::{Done, Engine, Job, Status as Executed};
use glimmer_proto::native::{Record, Status};
use glimmer_transport::packet::{PacketSender, RxBatch, Transmitted};
use std::sync::Arc;

/// One worker's side of the native protocol, without its sockets.
pub struct NativeEndpoint {
    decoder: Decoder,
    admission: Admission,
    /// Those of all workers.
    completions: Arc<CompletionTables>,
    me: usize,
    outbox: Outbox,
    /// What the engine answers.
    out: Vec<u8>,
    /// The reply that is being put together.
    reply: Vec<u8>,
    digests: Digests,
    /// The last batch, for its memory.
    settled: Box<Settled>,
    figures: NativeFigures,
}

/// What is needed to answer.
struct Tools<'t, 'd> {
    engine: &'t mut dyn Engine,
    /// The completion tables that the batch holds.
    held: HeldTables<'t>,
    now: Moment,
    /// The UDP ports of all workers, at the address where the datagrams came in.
    ports: &'t [u16],
    sending: Sending<'t>,
    dispatch: &'t mut Dispatch<'d>,
    /// No value of more bytes is copied by the next batch before the plan has been asked.
    size_max: u32,
}

/// A batch after its execution.
struct Settled {
    batch: Batch,
    /// What became of each job, and where its answer ends.
    done: [Done; BATCH_MAX],
}

impl Default for Settled {
    fn default() -> Settled {
        Settled {
            batch: Batch::default(),
            done: [SKIPPED; BATCH_MAX],
        }
    }
}

impl NativeEndpoint {
    /// The completion tables of all workers, whose endpoints may keep `bytes_max` bytes each.
    pub(crate) fn completions(rules: &Rules, bytes_max: usize) -> Arc<CompletionTables> {
        let bytes_max = bytes_max.saturating_sub(assembly_bytes_max(rules, bytes_max));
        let TokenKey(hash_key) = rules.token_key;
        let tables = CompletionTables::new(rules.layout.map, bytes_max, hash_key);
        Arc::new(tables)
    }

    /// The native endpoints of all workers, each of which may keep `bytes_max` bytes of what
    /// clients send over time.
    pub fn of_workers(rules: Rules, bytes_max: usize) -> Vec<NativeEndpoint> {
        let tables = NativeEndpoint::completions(&rules, bytes_max);
        (0..rules.workers())
            .map(|me| NativeEndpoint::new(rules.clone(), me, bytes_max, tables.clone()))
            .collect()
    }

    /// The native endpoint of worker `me`, which may keep `bytes_max` bytes of what clients send
    /// over time.
    pub(crate) fn new(
        rules: Rules,
        me: usize,
        bytes_max: usize,
        completions: Arc<CompletionTables>,
    ) -> NativeEndpoint {
        let assembly_bytes_max = assembly_bytes_max(&rules, bytes_max);
        let assemblies = Assemblies::new(rules.item_bytes_max, assembly_bytes_max);
        NativeEndpoint {
            decoder: Decoder::new(rules.token_key, assemblies),
            admission: Admission::new(rules, me),
            completions,
            me,
            outbox: Outbox::new(),
            out: Vec::new(),
            reply: Vec::new(),
            digests: Digests::new(),
            settled: Box::default(),
            figures: NativeFigures::default(),
        }
    }

    /// Goes by other rules from now on, for the same partitions.
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.admission.rules = rules;
    }

    /// What was counted.
    pub fn figures(&self) -> NativeFigures {
        NativeFigures {
            in_place: self.outbox.in_place,
            aside: self.outbox.aside,
            ..self.figures
        }
    }

    /// Bytes that are kept of what clients have sent.
    pub fn bytes(&self) -> usize {
        self.completions.bytes(self.me) + self.decoder.assemblies.bytes() + Digests::BYTES
    }

    /// Gives up requests that have stopped arriving.
    pub fn expire(&mut self, now: Moment) {
        self.decoder.assemblies.expire(now.ms);
        self.completions.expire(self.me, now.ms);
    }

    /// Executes what the datagrams of a burst ask for, as far as `dispatch` leaves it to this
    /// worker, and sends the replies. `ports` are those of all workers, at the address where the
    /// datagrams came in. Returns what became of the replies.
    pub fn answer<'t>(
        &mut self,
        received: &mut RxBatch,
        engine: &'t mut dyn Engine,
        now: Moment,
        dispatch: &'t mut Dispatch<'_>,
        ports: &'t [u16],
        sender: &'t mut dyn PacketSender,
    ) -> Transmitted {
        let completions = self.completions.clone();
        let mut tools = Tools {
            engine,
            held: completions.hold(),
            now,
            ports,
            sending: Sending::new(sender),
            size_max: dispatch.plan.size_max(),
            dispatch,
        };
        self.decoder.begin();
        let mut settled = std::mem::take(&mut self.settled);
        let mut at = Position::default();
        while at.segment_batch() < received.count() {
            self.execute(received, &mut at, &mut settled, &mut tools);
            self.reply_to(received, &settled, &mut tools);
            tools.held.release();
            if let Some(whole) = self.decoder.whole.take() {
                self.answer_whole(received, &whole, &mut tools);
                tools.held.release();
            }
        }
        self.settled = settled;
        self.outbox.leave(received, &mut tools.sending);
        tools.sending.transmitted
    }

    /// Reads a batch and executes it.
    fn execute(
        &mut self,
        received: &RxBatch,
        at: &mut Position,
        settled: &mut Settled,
        tools: &mut Tools<'_, '_>,
    ) {
        let size_max = tools.dispatch.plan.size_max();
        let mut reading = Reading {
            admission: &mut self.admission,
            judging: Judging {
                now: tools.now,
                dispatch: &mut *tools.dispatch,
                size_max: std::mem::replace(&mut tools.size_max, size_max),
                figures: &mut self.figures,
                held: &mut tools.held,
            },
        };
        let Settled { batch, done } = &mut *settled;
        let mut jobs = Jobs::new();
        (self.decoder).read(received, at, batch, &mut jobs, &mut reading);
        let done = &mut done[..jobs.len()];
        self.run(&jobs, done, tools);
        if !done.iter().all(is_done) {
            self.put_back(received, &jobs, settled, at, tools);
        }
    }

    fn run(&mut self, jobs: &[Job<'_>], done: &mut [Done], tools: &mut Tools<'_, '_>) {
        self.out.clear();
        self.out.shrink_to(BUFFER_BYTES_KEPT_MAX);
        if !jobs.is_empty() {
            let outs = std::slice::from_mut(&mut self.out);
            tools.engine.run(tools.now, jobs, outs, done);
            if let Some(tap) = &mut tools.dispatch.tap {
                tap.note(jobs, done);
            }
            self.figures.batches += 1;
            self.figures.requests += jobs.len() as u64;
            self.figures.written += self.out.len() as u64;
        }
    }

    /// Some jobs were not executed: the replies before them took too much room, a reader met too
    /// many writers, or a value was too large to be copied before the plan was asked. The first
    /// datagram with such a job begins the next batch, and those after it follow. If it was the
    /// first of this one, what was not executed of it is refused, unless the datagram can be handed
    /// over.
    #[cold]
    fn put_back(
        &mut self,
        received: &RxBatch,
        jobs: &[Job<'_>],
        settled: &mut Settled,
        at: &mut Position,
        tools: &mut Tools<'_, '_>,
    ) {
        let Settled { batch, done } = settled;
        let Batch {
            contexts, entries, ..
        } = batch;
        // What becomes of the first datagram's request, if it is not executed.
        let mut redirected = Entry::Settled(Status::AskAlone);
        if let ([context, ..], [Entry::Job { .. }, ..]) = (&contexts[..], &entries[..])
            && context.entries == 1
            && !is_done(&done[0])
        {
            match self.redirect(received, context, (jobs[0].keyhash, done[0].status), tools) {
                Some(entry) => redirected = entry,
                None => {
                    withdraw(entries, &mut tools.held);
                    *at = context.spot;
                    contexts.clear();
                    entries.clear();
                    return;
                }
            }
        }
        let held = &mut tools.held;
        let (mut job, mut start) = (0, 0);
        // The first datagram that is put back, and the entries behind the one that was not
        // finished.
        let (mut kept, mut behind) = (None, 0);
        for (index, context) in contexts.iter().enumerate() {
            let end = start + usize::from(context.entries);
            let jobs_before = job;
            let is_job = |entry: &&Entry| matches!(entry, Entry::Job { .. });
            job += entries[start..end].iter().filter(is_job).count();
            if done[jobs_before..job].iter().all(is_done) {
                start = end;
                continue;
            }
            // Of a datagram that is put back, what was executed is noted, and the rest is
            // forgotten.
            let mut job = jobs_before;
            for entry in &mut entries[start..end] {
                let Entry::Job { slot, .. } = *entry else {
                    continue;
                };
                if !is_done(&done[job]) {
                    withdraw(&[*entry], held);
                    if index == 0 {
                        *entry = redirected;
                    }
                } else if let Some(slot) = slot
                    && index > 0
                {
                    let from = job.checked_sub(1).map_or(0, |before| done[before].end);
                    let answer = &self.out[from..done[job].end];
                    note(Some(slot), answer, held);
                }
                job += 1;
            }
            kept = Some(index.max(1));
            behind = end;
            start = if index == 0 { end } else { start };
            break;
        }
        let Some(kept) = kept.filter(|&kept| kept < contexts.len()) else {
            return;
        };
        withdraw(&entries[behind..], held);
        *at = contexts[kept].spot;
        contexts.truncate(kept);
        entries.truncate(start);
    }

    /// What becomes of a datagram's only request, which the engine left to another worker. None: it
    /// is to be executed here after all, whatever the size of the value.
    #[cold]
    fn redirect(
        &self,
        received: &RxBatch,
        context: &RequestContext,
        (keyhash, status): (Keyhash, Executed),
        tools: &mut Tools<'_, '_>,
    ) -> Option<Entry> {
        let plan = tools.dispatch.plan;
        let (decision, refusal) = match status {
            Executed::Elsewhere { bytes } => (plan.on_sized(self.me, bytes), Status::Overloaded),
            Executed::AskOwner => {
                let owner = plan.layout().map.owner(keyhash);
                (Decision::HandTo(owner), Status::AskOwner)
            }
            _ => return Some(Entry::Settled(Status::AskAlone)),
        };
        let Decision::HandTo(worker) = decision else {
            tools.size_max = Job::ANY_SIZE;
            return None;
        };
        let (index, start) = (context.spot.segment_batch(), context.spot.offset as usize);
        let datagram = &received.bytes(index)[start..start + context.bytes as usize];
        let hand_to = tools.dispatch.hand_to.as_mut();
        let is_handed_over = worker != self.me
            && hand_to.is_some_and(|hand_to| {
                hand_to(
                    worker,
                    received.peer(index),
                    datagram,
                    received.segment_bytes(index),
                )
            });
        Some(match is_handed_over {
            true => Entry::HandedOver,
            false => Entry::Settled(refusal),
        })
    }

    /// Answers a request that came in fragments.
    fn answer_whole(&mut self, received: &mut RxBatch, whole: &Whole, tools: &mut Tools<'_, '_>) {
        let Whole {
            context, message, ..
        } = whole;
        let record = Record::read(message).filter(|&(_, bytes)| bytes == message.len());
        let Some((record, _)) = record else {
            return self.put_status(received, context, Status::Malformed, tools);
        };
        // It does not travel on: the table's access mode alone decides whether it is executed here.
        // At a port of all workers its fragments come here whatever its key, and whatever the
        // policy tells clients of owners.
        let plan = Plan::by_keyhash(tools.engine.layout());
        let mut judging = Judging {
            now: tools.now,
            dispatch: &mut Dispatch {
                plan: &plan,
                hand_to: None,
                fragments_to: None,
                tap: None,
            },
            size_max: Job::ANY_SIZE,
            figures: &mut self.figures,
            held: &mut tools.held,
        };
        let (mut batch, mut jobs) = (Batch::default(), Jobs::new());
        let judged = (self.admission).judge(
            whole.sender(&received.peer(context.spot.segment_batch())),
            &record,
            &mut batch,
            &mut jobs,
            &mut judging,
        );
        match judged {
            Ok(()) => {}
            Err(Wait::Elsewhere(_)) => {
                return self.put_status(received, context, Status::WrongPartition, tools);
            }
            Err(Wait::Pending | Wait::Busy) => return,
        }
        let mut done = [SKIPPED];
        self.run(&jobs, &mut done[..jobs.len()], tools);
        let [Done { status, end, .. }] = done;
        match batch.entries[0] {
            Entry::Job { slot, offset } if status == Executed::Done => {
                let message = Some(&message[..]);
                self.reply_to_job(received, context, message, (slot, offset), 0..end, tools);
            }
            unexecuted @ Entry::Job { .. } => {
                withdraw(&[unexecuted], &mut tools.held);
                self.put_status(received, context, Status::AskOwner, tools);
            }
            entry => self.reply_at_once(received, context, &entry, &batch.answers, tools),
        }
    }
}

/// Bytes that requests which arrive in fragments may take: half of what the endpoint may keep, but
/// never so little that the largest item could not be stored.
fn assembly_bytes_max(rules: &Rules, bytes_max: usize) -> usize {
    (bytes_max / 2).max(request_bytes_max(rules.item_bytes_max))
}

fn is_done(done: &Done) -> bool {
    done.status == Executed::Done
}

const SKIPPED: Done = Done::SKIPPED;

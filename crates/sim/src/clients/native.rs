//! A session of the client library over a network with faults.

use super::datagrams::calm_faults;
use super::{Client, Due, Notes, Request, Script};
use crate::history::{Action, Answer};
use crate::scenario::ClientPlan;
use crate::server::native_address;
use glimmer_client::{
    Ask, Change, Exptime, Failure, Reply, Session, Settings, Status, StoreMode, What,
};
use glimmer_transport::Poller;
use glimmer_transport::packet::{
    FaultInjector, Message, Microseconds, PacketDevice, PacketSender, RxBatch, Switch, SwitchPort,
};
use std::net::SocketAddr;

/// How long a request is tried.
const DEADLINE_US: u64 = 3_000_000;

/// A session, and its end of the network.
pub struct NativeClient {
    number: usize,
    plan: ClientPlan,
    script: Script,
    session: Session<usize>,
    device: FaultInjector<SwitchPort>,
    batch: RxBatch,
    /// Told of what the server sends.
    poller: Poller,
    /// By tag: what was asked, and its call.
    asked: Vec<(Request, usize)>,
}

impl NativeClient {
    /// A client that has not asked for the directory yet.
    pub fn new(number: usize, plan: &ClientPlan, switch: &Switch, time: Microseconds) -> Self {
        let address = SocketAddr::from(([10, 0, 1, number as u8], 9));
        let settings = Settings {
            deadline_us: DEADLINE_US,
            requests_per_datagram: if plan.seed.is_multiple_of(2) { 1 } else { 32 },
            round_robin: plan.seed.is_multiple_of(3),
            away_after: 0,
            ..Settings::default()
        };
        let faults = (plan.packets, plan.packets);
        let port = switch.attach(address);
        let poller = Poller::local(1);
        let watched = poller.watch_level(port.wakeup(), 0);
        watched.expect("a port in this process has a signal");
        NativeClient {
            number,
            plan: plan.clone(),
            script: Script::new(number, plan),
            session: Session::new(settings, plan.seed),
            device: FaultInjector::new(port, faults, plan.seed, time),
            batch: RxBatch::default(),
            poller,
            asked: Vec::new(),
        }
    }

    fn may_ask(&self, now_us: u64) -> bool {
        self.session.under_way() < self.plan.pipeline
            && self.script.due_us().is_some_and(|due_us| due_us <= now_us)
    }

    fn ask(&mut self, notes: &mut Notes) -> Result<(), String> {
        let Some(request) = self.script.take(notes.now.us) else {
            return Ok(());
        };
        let key = request.keys[0].clone();
        let call = notes.begin(self.number, key.clone(), request.action.clone());
        let ask = Ask {
            key: key.as_bytes(),
            what: what(&request)?,
            shows_cas: request.action == Action::Get,
        };
        if let Err((failure, _)) = self.session.ask(&ask, self.asked.len(), notes.now.us) {
            return Err(format!(
                "{} could not be asked: {failure:?}",
                request.action
            ));
        }
        self.asked.push((request, call));
        Ok(())
    }

    fn receive(&mut self, notes: &mut Notes) -> Result<(), String> {
        let NativeClient {
            session,
            device,
            batch,
            asked,
            script,
            plan,
            ..
        } = self;
        let is_cut = plan.packets.truncation > 0.0;
        let mut result = Ok(());
        let now_us = notes.now.us;
        let mut on_answer = |tag: usize, reply: Result<&Reply<'_>, Failure>| {
            let (request, call) = &asked[tag];
            match understand(&request.action, reply, is_cut) {
                Ok(answer) => {
                    if let (Answer::Value(Some(value)), Ok(reply)) = (&answer, reply) {
                        let unique = reply.cas.unwrap_or(0);
                        script.see(&request.keys[0], value, unique);
                        notes.see(&request.keys[0], value, unique);
                    }
                    notes.end(*call, answer);
                }
                Err(error) => result = Err(error),
            }
        };
        let mut received = Vec::new();
        while device.receive(batch) > 0 {
            for index in 0..batch.count() {
                for datagram in batch.bytes(index).chunks(batch.segment_bytes(index)) {
                    received.extend_from_slice(datagram);
                    session.receive(datagram, now_us, &mut on_answer);
                }
            }
        }
        session.expire(now_us, &mut on_answer);
        notes.trace.add(&received);
        result
    }

    fn send(&mut self, now_us: u64) {
        let (session, device) = (&mut self.session, &mut self.device);
        session.transmit(now_us, &mut |port, bytes, segment_bytes| {
            let mut to = native_address(0);
            to.set_port(port.unwrap_or(to.port()));
            device.send(&[Message::segments(to, bytes, segment_bytes)]);
        });
    }
}

/// What the library is asked.
fn what(request: &Request) -> Result<What<'_>, String> {
    // Both ways to say the same.
    let in_ms = request.keys[0].bytes().last().is_some_and(|it| it % 2 == 1);
    let expiry = |seconds: u32| match in_ms {
        false => Exptime::memcached(seconds),
        true => Exptime::ms(1000 * seconds),
    };
    let store = |mode, value, seconds| Change::Store {
        mode,
        expiry: expiry(seconds),
        flags: 0,
        value,
    };
    Ok(What::Change(match &request.action {
        Action::Get => return Ok(What::Get),
        Action::Set(value, expiry_s) => store(StoreMode::Set, value, *expiry_s),
        Action::Add(value, expiry_s) => store(StoreMode::Add, value, *expiry_s),
        Action::Replace(value, expiry_s) => store(StoreMode::Replace, value, *expiry_s),
        Action::Cas(_, value) => store(StoreMode::Cas(request.unique), value, 0),
        Action::Delete => Change::Delete,
        Action::Increment(delta) => Change::Increment { delta: *delta },
        Action::Touch(expiry_s) => Change::Touch {
            expiry: expiry(*expiry_s),
        },
        other => return Err(format!("the native protocol has no {other}")),
    }))
}

/// What an answer says. `is_cut`: the network cuts datagrams short, and a server refuses a request
/// that it cannot read, as it may every copy of one.
fn understand(
    action: &Action,
    reply: Result<&Reply<'_>, Failure>,
    is_cut: bool,
) -> Result<Answer, String> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Failure::Silent | Failure::Forgotten) => return Ok(Answer::Unknown),
        Err(Failure::Overloaded | Failure::TooManyWriters) => return Ok(Answer::Refused),
        Err(Failure::Protocol) if is_cut => return Ok(Answer::Refused),
        Err(failure) => return Err(format!("{action} failed: {failure:?}")),
    };
    Ok(match (action, reply.status) {
        (Action::Get, Status::Found) => Answer::Value(Some(reply.value.into())),
        (Action::Get, Status::NotFound) => Answer::Value(None),
        (_, Status::Stored | Status::Deleted | Status::Touched) => Answer::Done,
        (_, Status::Counted) => Answer::Number(reply.number.ok_or("a count without a number")?),
        (_, Status::Exists) => Answer::Exists,
        (_, Status::NotFound) => Answer::Absent,
        (_, Status::OutOfMemory) => Answer::NoMemory,
        (_, Status::Superseded) => Answer::Refused,
        (_, Status::Forgotten) => Answer::Unknown,
        (_, status) => return Err(format!("{action} was answered {status:?}")),
    })
}

impl Client for NativeClient {
    fn due(&self, now_us: u64) -> Due {
        if self.may_ask(now_us) || self.poller.has_signals() {
            return Due::Now;
        }
        let may_ask = self.session.under_way() < self.plan.pipeline;
        let asks = self.script.due_us().filter(|_| may_ask);
        let is_busy = self.session.under_way() > 0;
        let wakes = self.session.wakes_us().filter(|_| is_busy);
        let arrives = self.device.next_us();
        let times = [asks, wakes, arrives];
        match times.into_iter().flatten().min() {
            Some(at_us) if at_us <= now_us => Due::Now,
            Some(at_us) => Due::At(at_us),
            None => Due::Done,
        }
    }

    fn act(&mut self, notes: &mut Notes) -> Result<(), String> {
        if self.may_ask(notes.now.us) {
            self.ask(notes)?;
        }
        self.receive(notes)?;
        self.send(notes.now.us);
        Ok(())
    }

    fn reads_slowly(&self) -> bool {
        false
    }

    fn calm(&mut self, now_us: u64) {
        self.device.set_faults(calm_faults());
        self.script.calm(now_us);
    }
}

//! Who acts next, and what has to hold meanwhile.
//!
//! One thread lets one of the workers or clients act at a time: the seed says which of those that
//! have something to do. Each takes a little virtual time. Where none has anything to do, time
//! moves on to when one has.
//!
//! A server whose memory lies in a file may have several processes (`world/ends.rs`), one after the
//! other.
//!
//! After the clients have ended, nothing fails any more. They go on to ask, another one reads every
//! key, and each request has to be answered soon. Then the clients leave, and no memory may be held
//! for them. In the end the server is told to stop.

mod ends;

use crate::clients::{self, Client, Due, Notes};
use crate::clock::{LATE_US_MAX, SimClock};
use crate::history::{self, Answer, Call, Stamp};
use crate::linear::{self, Rules, Verdict};
use crate::scenario::{ClientPlan, Operation, Protocol, Scenario};
use crate::server::{self, Served};
use ends::Processes;
use glimmer_base::limits::NATIVE_ASSEMBLY_IDLE_MS;
use glimmer_dispatch::{AccessMode, Policy};
use glimmer_node::{DrivenWorker, Rest};
use glimmer_server::{DrivenServer, Mode};
use glimmer_transport::packet::{Faults, Switch};
use glimmer_transport::stream::StreamFaults;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Steps of a run at most.
const STEPS_MAX: u64 = 3_000_000;
/// Within this time a client that does nothing wrong is answered, in microseconds.
const ANSWER_US_MAX: u64 = 10_000_000;
/// Within this time every client is answered while nothing fails. A long native request may wait
/// until the memory of one is free that was given up when there were faults.
const CALM_ANSWER_US_MAX: u64 = 1_000 * NATIVE_ASSEMBLY_IDLE_MS + 2_000_000;
/// After this time a server whose clients have left holds no memory for them.
const REST_US: u64 = 3_000_000;
/// Turns of a worker in that time at most. It wakes up for its timers alone.
const REST_TURNS_MAX: u64 = 1_000;
/// Within this time a server that is told to stop has stopped.
const STOP_US_MAX: u64 = 30_000_000;
/// How often memory is looked at, in steps.
const MEMORY_STEPS: u64 = 64;
/// What a turn of a worker takes at most.
const TURN_US_MAX: u64 = 40;
/// What a turn takes in addition for each receive from a client that never stops. It is long, so
/// that few receives in one turn are enough to keep others waiting for too long.
const FLOOD_US: u64 = 400;
/// One turn in this many goes by an old time.
const LATE_TURNS: u32 = 8;
/// What a client takes at most for what it does at once.
const ACT_US_MAX: u64 = 20;

/// What came of a scenario.
#[derive(Debug)]
pub struct Report {
    /// What went wrong, if something did.
    pub failure: Option<Failure>,
    /// A number that follows from everything that happened: two runs of a seed have the same.
    pub trace: u64,
    /// How many steps it took.
    pub steps: u64,
    /// Every call.
    pub calls: Vec<Call>,
    /// Keys with a history that was too long to be checked.
    pub undecided: usize,
    /// Items that were evicted.
    pub evicted: u64,
    /// Reads that the accelerator answered.
    pub hits: u64,
    /// Processes of the server that were killed.
    pub kills: u64,
    /// Those of them that were killed in the midst of a turn.
    pub kills_in_turns: u64,
    /// Processes of the server that were stopped, and followed by another one.
    pub stops: u64,
    /// Items that were lost when processes were killed.
    pub lost: u64,
}

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In words.
    pub what: String,
    /// Of which key, if it is one key's.
    pub key: Option<String>,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has taken a turn.
    Awake,
    /// It will take another one.
    Busy,
    /// It sleeps until it is called, or until this time.
    Asleep(Option<u64>),
    /// It has left.
    Ended,
}

struct World<'a> {
    scenario: &'a Scenario,
    clock: SimClock,
    /// There is one, except while one process of the server follows another.
    served: Option<Served>,
    processes: Processes,
    phases: Vec<Phase>,
    /// Turns that each worker has taken.
    turns: Vec<u64>,
    /// The time that each worker has gone by last.
    read_us: Vec<u64>,
    clients: Vec<Box<dyn Client>>,
    notes: Notes,
    rng: SmallRng,
    /// Draws how old the times are that workers go by.
    late_rng: SmallRng,
    /// Pauses of the machine that are yet to come.
    clock_steps: Vec<(u64, u64)>,
    /// Dispatch policies that are yet to be put in force.
    switches: Vec<(u64, (&'static dyn Policy, AccessMode))>,
    /// Time in which no client could expect a reply: stalls, and pauses of the machine.
    excused_us: u64,
    /// The step from which nothing fails.
    calm_step: Option<u64>,
}

/// Who may act.
#[derive(Clone, Copy)]
enum Actor {
    Worker(usize),
    Client(usize),
}

/// Runs a scenario to its end, or until something goes wrong, and checks its history.
pub fn run(scenario: &Scenario) -> Report {
    let clock = SimClock::default();
    let processes = Processes::of(scenario);
    let served = match server::assemble(scenario, processes.next(&Switch::new()), &clock) {
        Ok(served) => served,
        Err(error) => panic!("seed {}: {error}", scenario.seed),
    };
    let mut world = World {
        phases: vec![Phase::Awake; scenario.server.workers],
        turns: vec![0; scenario.server.workers],
        read_us: vec![0; scenario.server.workers],
        clients: Vec::new(),
        notes: Notes::default(),
        rng: SmallRng::seed_from_u64(scenario.seed),
        late_rng: SmallRng::seed_from_u64(!scenario.seed),
        clock_steps: scenario.clock_steps.clone(),
        switches: scenario.switches.clone(),
        calm_step: None,
        excused_us: (scenario.stalls.iter().map(|stall| stall.for_us)).sum(),
        scenario,
        clock,
        served: Some(served),
        processes,
    };
    let result = world.run();
    world.report(result)
}

impl World<'_> {
    fn run(&mut self) -> Result<(), String> {
        for (number, plan) in self.scenario.clients.iter().enumerate() {
            let client = self.client(number, plan);
            self.clients.push(client);
        }
        self.serve()?;
        self.calm_down();
        self.serve()?;
        self.check_calm()?;
        self.check_memory()?;
        self.pass(REST_US)?;
        for client in &self.clients {
            client.check(&self.notes.calls)?;
        }
        self.clients.clear();
        self.rest()?;
        self.check_floor()?;
        self.stop()
    }

    /// Lets the clients go on without faults, and adds one that reads every key.
    fn calm_down(&mut self) {
        let now_us = self.clock.us();
        self.calm_step = Some(self.notes.now.step);
        self.excused_us = 0;
        self.clock_steps.clear();
        self.processes.calm();
        self.clients
            .iter_mut()
            .for_each(|client| client.calm(now_us));
        let last = self.client(self.scenario.clients.len(), &self.last_reader());
        self.clients.push(last);
    }

    fn served(&self) -> &Served {
        self.served.as_ref().expect("a process serves")
    }

    fn client(&self, number: usize, plan: &ClientPlan) -> Box<dyn Client> {
        clients::new(number, plan, self.served(), self.clock.microseconds())
    }

    /// Lets time pass in which clients have nothing to ask.
    fn pass(&mut self, for_us: u64) -> Result<(), String> {
        let until_us = self.clock.us() + for_us;
        while self.clock.us() < until_us {
            self.step_until(until_us)?;
        }
        Ok(())
    }

    /// Lets time pass in which the workers have nothing to do, and sleep.
    fn rest(&mut self) -> Result<(), String> {
        let before = self.turns.clone();
        self.pass(REST_US)?;
        let turns = self.turns.iter().zip(before);
        let turns: Vec<u64> = turns.map(|(turns, before)| turns - before).collect();
        match turns.iter().all(|turns| *turns <= REST_TURNS_MAX) {
            true => Ok(()),
            false => Err(format!(
                "workers with nothing to do took {turns:?} turns in {REST_US} us"
            )),
        }
    }

    /// A client that reads every key: what was acknowledged must be there.
    fn last_reader(&self) -> ClientPlan {
        let reads = self.scenario.keys().into_iter();
        ClientPlan {
            protocol: Protocol::Text,
            seed: self.scenario.seed,
            pipeline: 1,
            is_quiet: false,
            stream: StreamFaults::default(),
            packets: Faults::default(),
            read_pause_us: 0,
            operations: reads.map(|key| (0, Operation::Get(vec![key]))).collect(),
            calm: Vec::new(),
            logs_in: self.scenario.server.is_locked,
            is_encrypted: false,
        }
    }

    /// Runs until every client is done.
    fn serve(&mut self) -> Result<(), String> {
        while !self.are_done() || self.processes.is_stopping() {
            self.step()?;
            self.notes.check_uniques()?;
            if !self.processes.is_stopping() {
                self.check_answers()?;
            }
            if self.notes.now.step.is_multiple_of(MEMORY_STEPS) {
                self.check_memory()?;
            }
        }
        Ok(())
    }

    fn are_done(&self) -> bool {
        let now_us = self.clock.us();
        let mut others = self.clients.iter().filter(|client| !client.never_ends());
        others.all(|client| client.due(now_us) == Due::Done)
    }

    /// How often workers have received from clients that never stop.
    fn flooded(&self) -> u64 {
        self.clients.iter().map(|client| client.flooded()).sum()
    }

    fn stop(&mut self) -> Result<(), String> {
        self.served().server.node.stop();
        let since_us = self.clock.us();
        while self.phases.iter().any(|phase| *phase != Phase::Ended) {
            self.step()?;
            if self.clock.us() - since_us > STOP_US_MAX + self.excused_us {
                return Err(format!("the server has not stopped: {:?}", self.phases));
            }
        }
        self.check_floor()
    }

    fn step(&mut self) -> Result<(), String> {
        self.step_until(u64::MAX)
    }

    /// Lets somebody act, or time pass, but not beyond this time.
    fn step_until(&mut self, until_us: u64) -> Result<(), String> {
        if self.change_processes()? {
            return Ok(());
        }
        let now_us = self.clock.us();
        if let Some(at) = (self.clock_steps.iter()).position(|(at_us, _)| *at_us <= now_us) {
            let (_, by_us) = self.clock_steps.swap_remove(at);
            self.excused_us += by_us;
            self.clock.advance(by_us);
            return Ok(());
        }
        if let Some(at) = (self.switches.iter()).position(|(at_us, _)| *at_us <= now_us) {
            let (_, (policy, access)) = self.switches.swap_remove(at);
            let node = &self.served().server.node;
            let now = node.figures().now();
            // It is refused while another change of the access mode is going on.
            let _ = node.switch(Arc::new(policy), access, now);
            return Ok(());
        }
        let (ready, next_us) = self.ready(now_us);
        let until_us = (until_us < u64::MAX).then_some(until_us);
        let next_us = next_us.into_iter().chain(until_us).min();
        self.notes.now = Stamp {
            step: self.notes.now.step + 1,
            us: now_us,
        };
        if self.notes.now.step > STEPS_MAX {
            return Err("it does not come to an end".into());
        }
        match (ready.is_empty(), next_us) {
            (true, None) => {
                let phases = &self.phases;
                Err(format!(
                    "somebody waits, and nobody has anything to do: {phases:?}"
                ))
            }
            (true, Some(next_us)) => {
                self.clock.advance(next_us.saturating_sub(now_us).max(1));
                Ok(())
            }
            (false, _) => {
                let chosen = self.rng.random_range(0..ready.len());
                self.act(ready[chosen])
            }
        }
    }

    /// Who has something to do, and when the others have.
    fn ready(&self, now_us: u64) -> (Vec<Actor>, Option<u64>) {
        let (mut ready, mut next_us) = (Vec::new(), Vec::new());
        let workers = self.phases.iter().zip(&self.served().server.node.workers);
        for (number, (phase, worker)) in workers.enumerate() {
            let is_due = match phase {
                Phase::Awake | Phase::Busy => true,
                Phase::Asleep(until_us) => {
                    next_us.extend(until_us.filter(|until_us| *until_us > now_us));
                    worker.is_called() || until_us.is_some_and(|until_us| until_us <= now_us)
                }
                Phase::Ended => false,
            };
            match (is_due, self.stalled_until_us(number, now_us)) {
                (true, Some(until_us)) => next_us.push(until_us),
                (true, None) => ready.push(Actor::Worker(number)),
                (false, _) => {}
            }
        }
        for (number, client) in self.clients.iter().enumerate() {
            match client.due(now_us) {
                Due::Now => ready.push(Actor::Client(number)),
                Due::At(at_us) => next_us.push(at_us),
                Due::Waits | Due::Done => {}
            }
        }
        (ready, next_us.into_iter().min())
    }

    fn stalled_until_us(&self, worker: usize, now_us: u64) -> Option<u64> {
        let stalls = self.scenario.stalls.iter();
        let is_calm = self.calm_step.is_some();
        let stalls = stalls.filter(|stall| stall.worker == worker && !is_calm);
        let ends = stalls.map(|stall| (stall.at_us, stall.at_us + stall.for_us));
        ends.filter(|(from_us, until_us)| (*from_us..*until_us).contains(&now_us))
            .map(|(_, until_us)| until_us)
            .max()
    }

    fn act(&mut self, actor: Actor) -> Result<(), String> {
        let took_us = match actor {
            Actor::Worker(number) => {
                self.notes.trace.add(&[b'w', number as u8]);
                self.turns[number] += 1;
                let flooded = self.flooded();
                let late_us = self.late_us(number);
                self.clock.set_late(late_us);
                let served = self.served.as_mut().expect("a process serves");
                let worker = &mut served.server.node.workers[number];
                self.phases[number] = next_phase(self.phases[number], worker, self.clock.us());
                self.clock.set_late(0);
                let receives = self.flooded().saturating_sub(flooded);
                self.rng.random_range(1..=TURN_US_MAX) + receives * FLOOD_US
            }
            Actor::Client(number) => {
                self.notes.trace.add(&[b'c', number as u8]);
                self.clients[number]
                    .act(&mut self.notes)
                    .map_err(|error| format!("client {number}: {error}"))?;
                self.rng.random_range(1..=ACT_US_MAX)
            }
        };
        self.notes.trace.add(&self.clock.us().to_le_bytes());
        self.clock.advance(took_us);
        Ok(())
    }

    /// How old the time is that this worker goes by in its next turn. For each worker, time never
    /// goes back; what it learns from another may lie ahead of it.
    fn late_us(&mut self, worker: usize) -> u64 {
        let late_us = match self.late_rng.random_ratio(1, LATE_TURNS) {
            true => self.late_rng.random_range(0..=LATE_US_MAX),
            false => 0,
        };
        let (now_us, read_us) = (self.clock.us(), &mut self.read_us[worker]);
        *read_us = now_us.saturating_sub(late_us).max(*read_us);
        now_us - *read_us
    }

    /// Whether those who may expect an answer have it in time.
    fn check_answers(&self) -> Result<(), String> {
        let clients = &self.clients;
        let reads_slowly =
            |client: usize| clients.get(client).is_some_and(|one| one.reads_slowly());
        let Some(oldest) = self.notes.oldest_open(|call| !reads_slowly(call.client)) else {
            return Ok(());
        };
        let waits_us = self.clock.us().saturating_sub(oldest.begun.us);
        let us_max = match self.calm_step {
            Some(_) => CALM_ANSWER_US_MAX,
            None => ANSWER_US_MAX,
        };
        if waits_us > us_max + self.excused_us {
            return Err(format!(
                "not answered within {} s: {oldest}",
                waits_us / 1_000_000
            ));
        }
        Ok(())
    }

    /// Whether each request was answered that was asked while nothing failed.
    fn check_calm(&self) -> Result<(), String> {
        let calm_step = self.calm_step.unwrap_or(u64::MAX);
        let calls = self.notes.calls.iter();
        let mut calls = calls.filter(|call| call.begun.step > calm_step);
        let is_lost = |call: &&Call| {
            matches!(call.answer, Answer::Unknown | Answer::Refused) && !self.is_news_to(call)
        };
        match calls.find(is_lost) {
            None => Ok(()),
            Some(call) => Err(format!("nothing failed, and it was not answered: {call}")),
        }
    }

    /// Whether a native client learns by this call that another process serves. It gives up what it
    /// has under way then, because the process before may have done it.
    fn is_news_to(&self, call: &Call) -> bool {
        let since_step = self.processes.since_step;
        let clients = &self.scenario.clients;
        let is_native =
            (clients.get(call.client)).is_some_and(|client| client.protocol == Protocol::Native);
        let mut calls = self.notes.calls.iter();
        let knows = |other: &Call| {
            let is_answered = other.ended.is_some_and(|end| end.step <= call.begun.step);
            other.client == call.client && other.begun.step >= since_step && is_answered
        };
        is_native && since_step > 0 && !calls.any(knows)
    }

    /// Whether the memory for connections that have been closed was given back.
    fn check_floor(&self) -> Result<(), String> {
        let workers = self.served().server.node.workers.iter();
        let held: Vec<usize> = workers.map(|worker| worker.held_bytes()).collect();
        match held.iter().all(|held| *held == 0) {
            true => Ok(()),
            false => Err(format!(
                "no connection is left, and {held:?} bytes are held"
            )),
        }
    }

    /// Whether buffers and tables are within the plan.
    fn check_memory(&self) -> Result<(), String> {
        let Served { server, .. } = self.served();
        let tables = server.tables.iter().map(|figures| figures.table());
        let bytes: u64 = tables
            .map(|table| table.log_bytes + table.index_bytes)
            .sum();
        let plan = server.plan;
        let planned = (plan.partitions * plan.partition_bytes()) as u64;
        if bytes > planned {
            return Err(format!(
                "tables take {bytes} bytes, and were to take {planned}"
            ));
        }
        for (worker, tally) in server.node.figures().tallies().iter().enumerate() {
            let held = tally.buffer_bytes.saturating_sub(tally.buffer_bytes_free);
            if held > plan.buffer_bytes_per_worker as u64 {
                return Err(format!("worker {worker} holds {held} bytes of buffers"));
            }
        }
        Ok(())
    }

    /// Checks the history, unless something else has gone wrong before.
    fn report(mut self, result: Result<(), String>) -> Report {
        if let Some(served) = self.served.take() {
            self.note_figures(&served.server);
        }
        let past = self.processes.past;
        let calls = self.notes.calls;
        let mut undecided = 0;
        let mut failure = result.err().map(|what| Failure { what, key: None });
        if failure.is_none() {
            let rules = Rules {
                may_evict: self.scenario.server.mode == Mode::Cache && past.evicted > 0,
                ahead_us: past.ahead_us(),
            };
            for key in history::keys(&calls) {
                match linear::check(&history::of_key(&calls, &key), rules) {
                    Verdict::Linearizable => {}
                    Verdict::Unknown => undecided += 1,
                    Verdict::Impossible => {
                        failure = Some(Failure {
                            what: format!(
                                "no order of the operations on {key} explains the answers"
                            ),
                            key: Some(key),
                        });
                        break;
                    }
                }
            }
        }
        Report {
            failure,
            trace: self.notes.trace.number(),
            steps: self.notes.now.step,
            calls,
            undecided,
            evicted: past.evicted,
            hits: past.hits,
            kills: past.kills,
            kills_in_turns: past.kills_in_turns,
            stops: past.stops,
            lost: past.lost,
        }
    }

    /// Adds the figures of a process that ends.
    fn note_figures(&mut self, server: &DrivenServer) {
        let tables = server.tables.iter();
        let evicted: u64 = (tables.map(|figures| figures.table().store.evictions)).sum();
        let figures = server.node.figures();
        let now_ms = figures.now().ms;
        let hits = (figures.accelerator()).map_or(0, |one| one.figures(now_ms).body.hits);
        self.processes.past.evicted += evicted;
        self.processes.past.hits += hits;
    }
}

/// Lets a worker do what it does next.
fn next_phase(phase: Phase, worker: &mut DrivenWorker, now_us: u64) -> Phase {
    match phase {
        Phase::Awake => match worker.rest() {
            Rest::Busy => Phase::Busy,
            Rest::Asleep(timeout) => {
                Phase::Asleep(timeout.map(|timeout| now_us + timeout.as_micros() as u64))
            }
        },
        Phase::Busy | Phase::Asleep(_) => match worker.turn() {
            true => Phase::Awake,
            false => Phase::Ended,
        },
        Phase::Ended => Phase::Ended,
    }
}

//! A worker: the event loop of one core.
//!
//! A turn takes what the poller and the other workers bring, serves every connection that has
//! something to be done, and tells the other workers. Nothing in it blocks. Between turns the
//! worker waits, and the wait sleeps only if nothing is left to do.
//!
//! | file | idea |
//! | --- | --- |
//! | `sources` | what the worker waits for beside its connections |
//! | `forwarded` | what comes in from other workers |
//! | `wait` | how long the worker may sleep |
//! | `naps` | whether sleeping is worth its while |
//! | `access` | its part in a change of the access mode |
//! | `drain` | how a worker leaves |

mod access;
mod drain;
mod forwarded;
mod naps;
mod sources;
mod wait;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use glimmer_base::Moment;
use glimmer_base::limits::{NATIVE_IDLE_TURNS_MAX, WITHHELD_PER_TURN_MAX};
use glimmer_base::sync::park;
use glimmer_dispatch::Plan;
use glimmer_engine::Engine;
use glimmer_transport::Poller;

use crate::admin::allowance::Allowance;
use crate::admin::handler::AdminHandler;
use crate::admin::stats::Counts;
use crate::admin::walks::Walks;
use crate::bind::Sources;
use crate::budget::memory::Memory;
use crate::busy_poll::BusyPoll;
use crate::config::NodeConfig;
use crate::core::Core;
use crate::dispatch::counting::Counting;
use crate::dispatch::slow::SlowWatch;
use crate::forward::port::Port;
use crate::hot::Tender;
use crate::packet::Packets;
use crate::packet::native::NativeServer;
use crate::packet::source::PacketSource;
use crate::shared::Shared;
use crate::stream::Streams;
use crate::stream::accept::Acceptor;
use crate::stream::journey::Travels;
use crate::tenants::Seen;
pub use wait::Rest;

use access::Stage;
use drain::Drain;
use naps::Naps;
use sources::{Source, SourceList};

const TICK: Duration = Duration::from_secs(1);

/// One core's share of the server.
pub(crate) struct Worker {
    core: Core,
    poller: Poller,
    /// What the poller watches beside connections.
    sources: SourceList,
    acceptor: Acceptor,
    streams: Streams,
    packets: Packets,
    /// The way to and from the other workers.
    port: Port,
    walks: Walks,
    drain: Drain,
    /// It has said that it sleeps.
    is_resting: bool,
    /// Where it is in a change of the access mode.
    stage: Stage,
    /// It never sleeps, as a device has no wake-ups or as it is told to.
    polls: bool,
    /// Turns that may find nothing to do before the worker sleeps.
    idle_turns_left: u32,
    naps: Naps,
    /// When timers were last looked at, in milliseconds since the epoch.
    ticked_ms: u64,
}

impl Worker {
    /// Worker `me`, whose sources this poller watches from now on.
    pub fn new(
        me: usize,
        shared: Arc<Shared>,
        admin: Arc<dyn AdminHandler>,
        engine: Box<dyn Engine>,
        (port, travels): (Port, Arc<Travels>),
        sources: Sources,
        poller: Poller,
    ) -> io::Result<Worker> {
        let (plan_version, plan) = shared.plans.take(me);
        let config = &shared.config;
        let bytes = config.worker_bytes();
        let now = config.clock.now();
        let mut list = SourceList::default();
        let listeners = sources.listeners.into_iter().enumerate();
        let listeners = listeners.map(|(n, source)| (list.add(Source::Listener(n)), source));
        let listeners = listeners.collect();
        let packets = sources.packets.into_iter().enumerate();
        let packets = packets.map(|(n, source)| source.with_token(list.add(Source::Packets(n))));
        let packets: Vec<_> = packets.collect();
        let has_polled = packets.iter().any(PacketSource::is_polled);
        let native = (config.native.as_ref().zip(shared.completions.clone())).map(
            |(native, completions)| {
                let bytes_max = config.native_bytes();
                let (rules, layout) = (native.rules.clone(), engine.layout());
                Box::new(NativeServer::new(rules, layout, me, bytes_max, completions))
            },
        );
        let mut worker = Worker {
            poller,
            sources: list,
            acceptor: Acceptor::new(listeners),
            streams: Streams::new(travels),
            packets: Packets::new(me, packets, native, shared.observers().accelerator()),
            port,
            walks: Walks::default(),
            drain: Drain::default(),
            is_resting: false,
            stage: Stage::Serving,
            polls: has_polled || config.busy_poll == BusyPoll::Always,
            idle_turns_left: 0,
            naps: Naps::default(),
            ticked_ms: now.ms,
            core: Core {
                me,
                is_alone: shared.is_alone(),
                hasher: config.hasher.clone(),
                now,
                untimed_requests: 0,
                memory: Memory::new(
                    bytes,
                    NodeConfig::turn_bytes(&config.limits),
                    config.limits.item_bytes_max,
                    now.ms,
                ),
                tally: Counts::default(),
                answered: 0,
                is_alarmed: false,
                is_draining: false,
                small_request_ms: 0,
                slice_bytes: usize::MAX,
                counting: {
                    let clock = config.clock.clone();
                    let slow = SlowWatch::new(shared.slow.clone(), clock, me);
                    let mut counting = Counting::new(slow);
                    counting.follow(&plan, me);
                    counting
                },
                plan,
                plan_version,
                tender: {
                    let accelerator = shared.observers().accelerator().cloned();
                    accelerator.map(|it| Box::new(Tender::new(it, me)))
                },
                users: Seen::default(),
                allowance: Allowance::default(),
                engine,
                admin,
                shared,
            },
        };
        worker.port.note_plan(&worker.core.plan);
        worker.watch_sources()?;
        Ok(worker)
    }

    /// Registers every source with the poller, and adds all but the doorbell to the connection
    /// registry.
    fn watch_sources(&mut self) -> io::Result<()> {
        let core = &self.core;
        let doorbell = &core.shared.doorbells[core.me].bell().0;
        let token = self.sources.add(Source::Doorbell);
        self.poller.watch_edges(doorbell.wakeup(), token)?;
        self.packets.watch(core, &self.poller);
        self.acceptor.watch(&self.poller)?;
        self.acceptor.register(core);
        Ok(())
    }

    /// Runs until the server is told to stop. Returns its engine.
    pub fn run(mut self) -> Box<dyn Engine> {
        let clock = self.core.shared.config.clock.clone();
        let work = self.core.shared.plans.work(self.core.me);
        work.note_thread(glimmer_transport::thread_number());
        loop {
            match self.has_handed_in() {
                true => park(),
                false => self.wait(),
            }
            if !self.turn(clock.now()) {
                return self.into_engine();
            }
        }
    }

    /// The engine of a worker that has ended.
    pub fn into_engine(self) -> Box<dyn Engine> {
        self.core.engine
    }

    /// Does what there is to do at a moment. Returns whether the worker goes on.
    #[inline(always)]
    pub fn turn(&mut self, now: Moment) -> bool {
        if self.has_handed_in() {
            self.take_engine_back();
            return true;
        }
        self.core.set_time(now);
        if let Some(before) = self.core.follow_plan() {
            self.note_plan(&before);
        }
        self.core.begin_turn();
        let began = self.polls.then(|| self.begin_polled());
        self.walks.go_first(&mut self.core);
        self.take_events();
        self.take_from_workers();
        self.serve_streams();
        self.look_at_timers();
        if let Some(began) = began {
            self.note_polled(began);
        }
        self.show();
        if self.core.plan.is_interim() {
            self.prepare_access();
        }
        self.goes_on()
    }

    /// The time, and what a worker that never sleeps has moved so far. Its CPU time does not tell
    /// how much of it is work.
    fn begin_polled(&self) -> (u64, u64) {
        let tally = &self.core.tally;
        let moved = tally.bytes_read + tally.bytes_written + tally.forwarded_batches_run;
        (self.core.shared.config.clock.ns(), moved)
    }

    /// The turn that began then counts as work if it has moved something.
    fn note_polled(&mut self, (began_ns, moved): (u64, u64)) {
        let (now_ns, moves) = self.begin_polled();
        if moves != moved {
            self.core.tally.polling_busy_ns += now_ns - began_ns;
        }
    }

    /// The worker goes by another plan than this one from now on.
    #[cold]
    #[inline(never)]
    fn note_plan(&mut self, before: &Plan) {
        self.port.note_plan(&self.core.plan);
        self.streams.note_plan(before, &mut self.core);
        self.packets.note_plan(&self.core, &self.poller);
    }

    /// Bytes of memory that connections hold.
    pub fn held_bytes(&self) -> usize {
        self.core.memory.budget.held()
    }

    /// Whether a poller of signals has something to report.
    pub fn has_signals(&self) -> bool {
        self.poller.has_signals()
    }

    /// Handles the poller's events, and serves the packet devices.
    fn take_events(&mut self) {
        for index in 0..self.poller.ready_count() {
            let ready = self.poller.ready(index);
            match self.sources.get(ready.token) {
                None => self.streams.note_readiness(ready, &mut self.core),
                Some(Source::Doorbell) => {}
                Some(Source::Listener(index)) => {
                    let (core, streams) = (&mut self.core, &mut self.streams);
                    (self.acceptor).accept_some(index, core, streams, &self.poller);
                }
                Some(Source::Packets(index)) => self.packets.call(index),
            }
        }
        if !self.core.is_alone && self.packets.has_news_of_calls(&self.core) {
            self.packets.note_calls(&self.core);
        }
        if self.packets.has_calls() {
            self.serve_packets();
        }
    }

    /// Answers the datagrams that wait at packet devices.
    fn serve_packets(&mut self) {
        let (core, port, streams) = (&mut self.core, &mut self.port, &self.streams);
        let is_idle = |core: &Core, port: &Port| {
            !streams.is_busy(core) && !streams.has_travellers(core) && !port.has_incoming()
        };
        if self.packets.serve(core, port, &self.poller, is_idle) {
            self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
        }
    }

    /// Takes what other workers have left for this one.
    fn take_from_workers(&mut self) {
        let (core, port) = (&mut self.core, &mut self.port);
        self.streams.take_accepted(core, &self.poller);
        self.streams.take_dumps(core);
        if self.streams.has_shaking() {
            self.streams.take_shaken(core);
        }
        if !core.is_alone {
            self.streams.take_travellers(core);
            if self.streams.has_movers(core) {
                self.streams.take_movers(core, &self.poller);
            }
            self.streams.move_leaving(core, &self.poller);
        }
        let (streams, packets) = (&mut self.streams, &mut self.packets);
        let has_native = !core.is_alone && forwarded::take(core, port, streams, packets);
        packets.go_on(core, port);
        if has_native && packets.are_apart() {
            self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
        }
    }

    /// Serves the connections that are ready, and sends what is for other workers.
    fn serve_streams(&mut self) {
        let (core, port) = (&mut self.core, &mut self.port);
        if core.memory.is_short {
            self.streams.relieve(core, port);
        }
        self.streams.begin_to_make_room();
        if core.shared.places.are_awaited() {
            self.streams.serve_waiting_uploads(core);
            self.streams.give_up_upload(core);
        }
        if self.streams.may_hold_encrypted() {
            self.streams.bound_encrypted(core);
        }
        if self.streams.has_handshakes() {
            self.streams.serve_handshakes(core);
        }
        if self.streams.has_borrowers() {
            self.streams.look_after_borrowers(core);
        }
        if self.streams.has_due_throttled(core) {
            self.streams.release_throttled(core);
        }
        if self.streams.serve_ready(core, port) {
            let idle_turns = self.naps.note_large();
            self.idle_turns_left = self.idle_turns_left.max(idle_turns);
        }
        if !core.is_alone {
            self.ship();
        }
        self.streams.bound_held(&mut self.core);
    }

    /// Sends what is for other workers.
    fn ship(&mut self) {
        let (core, port) = (&mut self.core, &mut self.port);
        port.ship();
        if port.has_unfinished() {
            let packets = &self.packets;
            let awaits = |datagram, slot| packets.awaits(datagram, slot);
            self.streams.resume_forwarded(awaits, core, port);
        }
        port.account(&mut core.memory, &mut core.tally);
        port.wake_peers();
        forwarded::resume_out_of_credit(port, &mut self.streams, &mut self.packets);
    }

    fn look_at_timers(&mut self) {
        let core = &mut self.core;
        if core.now.ms - self.ticked_ms >= TICK.as_millis() as u64 {
            self.ticked_ms = core.now.ms;
            self.packets.expire(core);
            core.memory.age(core.now.ms);
            if core.memory.pool.take_freed() {
                glimmer_transport::give_back_freed();
            }
            self.acceptor.listen_again(core, &self.poller);
            self.streams.close_idle(core);
            (self.streams).give_up_gatherer(TICK.as_millis() as u64, core);
            self.streams.close_full_watchers(core);
            self.streams.close_late_handshakes(core);
            self.streams.look_for_encrypted();
            self.streams.follow_limits(core);
            core.admin.tick(core.me, core.now);
            self.walks.look_for_groups(core);
        }
        if self.streams.has_refused() {
            self.streams.tell_refused(core);
        }
        self.walks.go_on(core);
        if let Some(tender) = &mut core.tender {
            let tally = &mut core.tally;
            tender.tend(core.now, &mut *core.engine, &core.shared, tally);
        }
        if self.streams.withheld_until_ms().is_some() {
            let streams = &mut self.streams;
            streams.send_withheld(core.now.ms, WITHHELD_PER_TURN_MAX, core);
        }
        if core.is_alarmed {
            core.raise_alarms();
        }
    }

    /// Shows watchers what happened, and others what was counted.
    fn show(&mut self) {
        let core = &mut self.core;
        self.streams.serve_watchers(core);
        if self.streams.take_closed() {
            self.acceptor.listen_again(core, &self.poller);
        }
        core.tally.turns += 1;
        core.show_figures();
    }
}

//! The ends of the server's process, each of which is followed by a process that goes on with the
//! memory file.
//!
//! A process is killed between two steps or in the midst of a turn. The next one gets a copy of the
//! file as it was then. What is left of the turn changes only the file that was copied, and nobody
//! hears of it, as the network is cut.

use super::{Phase, STOP_US_MAX, World};
use crate::memory::MemoryFiles;
use crate::scenario::{End, Ending, Scenario, ServerPlan};
use crate::server::{self, Process, Served};
#[cfg(debug_assertions)]
use glimmer_base::sync::order_points;
use glimmer_server::{Mode, TableKind};
use glimmer_transport::packet::Switch;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// How far a process may begin ahead of the one before, in microseconds: it begins with the end of
/// the interval of which the file knows the beginning.
const AHEAD_US: u64 = 20_000;

/// The processes of a server: one after the other.
pub struct Processes {
    /// Where their memory lies, if that is a file.
    files: Option<Rc<RefCell<MemoryFiles>>>,
    /// Ends that are yet to come.
    left: VecDeque<End>,
    /// The step in which the next end happens, once its calls have begun.
    at_step: Option<u64>,
    /// The process has been told to stop: when, and how that goes on.
    stopping: Option<(u64, End)>,
    /// The process is killed when it comes to a point in a turn.
    doomed: Option<Doomed>,
    /// The step in which the present one began.
    pub since_step: u64,
    /// Figures of those that have ended.
    pub past: Past,
}

/// A process that will be killed in a turn.
struct Doomed {
    /// Set when it was, to whether the file could be copied.
    left: Rc<Cell<Option<io::Result<()>>>>,
    end: End,
}

/// Figures of processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    /// Processes that were killed.
    pub kills: u64,
    /// Those of them that were killed in the midst of a turn.
    pub kills_in_turns: u64,
    /// Processes that were stopped.
    pub stops: u64,
    /// Items that were evicted.
    pub evicted: u64,
    /// Items that were lost when processes were killed.
    pub lost: u64,
    /// Reads that the accelerator answered.
    pub hits: u64,
}

impl Past {
    /// By how much the server's clock may be ahead, in microseconds.
    pub fn ahead_us(self) -> u64 {
        (self.kills + self.stops) * AHEAD_US
    }
}

impl Processes {
    /// The processes of a scenario.
    pub fn of(scenario: &Scenario) -> Processes {
        let files = scenario.server.in_memory_file.then(MemoryFiles::new);
        let files = files.transpose();
        let files = files.unwrap_or_else(|error| panic!("a memory file: {error}"));
        Processes {
            files: files.map(RefCell::new).map(Rc::new),
            left: scenario.ends.iter().copied().collect(),
            at_step: None,
            stopping: None,
            doomed: None,
            since_step: 0,
            past: Past::default(),
        }
    }

    /// What the next process begins with.
    pub fn next<'a>(&self, switch: &'a Switch) -> Process<'a> {
        Process {
            switch,
            memory_file: self.files.as_ref().map(|files| files.borrow().path()),
            number: self.past.kills + self.past.stops,
        }
    }

    /// Whether a process has been told to stop, and the next one does not serve yet.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// No process ends any more.
    pub fn calm(&mut self) {
        self.left.clear();
        self.spare();
    }

    /// The process is not killed.
    fn spare(&mut self) {
        self.doomed = None;
        #[cfg(debug_assertions)]
        order_points::await_none();
    }

    /// The end that begins now, after this many calls.
    fn due(&mut self, calls: usize, step: u64) -> Option<End> {
        if self.doomed.is_some() {
            return None;
        }
        let next = *self.left.front()?;
        if self.at_step.is_none() && calls >= next.calls {
            self.at_step = Some(step + next.steps);
        }
        if self.at_step.is_none_or(|at_step| step < at_step) {
            return None;
        }
        self.at_step = None;
        self.left.pop_front()
    }
}

/// Has something happen at the point with this number, from 1 on, that this thread comes to. Only
/// what is built with debug assertions knows these points. Else it happens now.
fn at_point(number: usize, then: impl FnOnce() + 'static) {
    #[cfg(debug_assertions)]
    order_points::at(number - 1, then);
    #[cfg(not(debug_assertions))]
    then();
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.spare();
    }
}

impl World<'_> {
    /// Ends the process, or has the next one serve, if it is time. Returns whether it was.
    pub(super) fn change_processes(&mut self) -> Result<bool, String> {
        let now_us = self.clock.us();
        let doomed = self.processes.doomed.as_ref();
        if let Some((left, end)) = doomed.and_then(|it| Some((it.left.take()?, it.end))) {
            left.map_err(|error| format!("a memory file: {error}"))?;
            self.processes.past.kills_in_turns += 1;
            self.next_process(end)?;
            return Ok(true);
        }
        if let Some((since_us, end)) = self.processes.stopping {
            if self.phases.iter().all(|phase| *phase == Phase::Ended) {
                self.check_floor()?;
                self.next_process(end)?;
                return Ok(true);
            }
            if now_us - since_us > STOP_US_MAX + self.excused_us {
                return Err(format!("the server has not stopped: {:?}", self.phases));
            }
        }
        let (calls, step) = (self.notes.calls.len(), self.notes.now.step);
        let Some(end) = self.processes.due(calls, step) else {
            return Ok(false);
        };
        match end.how {
            Ending::Killed if end.points > 0 => self.doom(end),
            Ending::Killed => {
                let left = self.processes.files.as_ref();
                let left = left.map_or(Ok(()), |files| files.borrow_mut().leave());
                left.map_err(|error| format!("a memory file: {error}"))?;
                self.next_process(end)?;
            }
            // It may be told again.
            Ending::Stopped => {
                self.clients.iter_mut().for_each(|one| one.lose_server());
                self.served().server.node.stop();
                self.processes.stopping.get_or_insert((now_us, end));
            }
        }
        Ok(true)
    }

    /// Has the process be killed at a point in a turn that is yet to come.
    fn doom(&mut self, end: End) {
        let Some(files) = self.processes.files.clone() else {
            return;
        };
        let left = Rc::new(Cell::new(None));
        let (cut, has_left) = (self.served().cut(self.scenario), left.clone());
        at_point(end.points, move || {
            has_left.set(Some(files.borrow_mut().leave()));
            cut();
        });
        self.processes.doomed = Some(Doomed { left, end });
    }

    /// Ends the process for good, and has another one go on.
    fn next_process(&mut self, end: End) -> Result<(), String> {
        self.clients.iter_mut().for_each(|one| one.lose_server());
        self.processes.spare();
        if let Some((since_us, _)) = self.processes.stopping.take() {
            // Those that were not accepted any more have waited for the next one.
            self.excused_us += self.clock.us() - since_us;
        }
        let served = self.served.take().expect("a process serves");
        let Served { server, switch, .. } = served;
        self.note_figures(&server);
        let is_killed = end.how == Ending::Killed;
        match is_killed {
            true => drop(server),
            false => server.close(),
        }
        let past = &mut self.processes.past;
        past.kills += u64::from(is_killed);
        past.stops += u64::from(!is_killed);
        self.notes.trace.add(&[b'e', u8::from(is_killed)]);
        self.excused_us += end.down_us;
        self.clock.advance(end.down_us);
        let next = self.processes.next(&switch);
        let served = server::assemble(self.scenario, next, &self.clock);
        let served = served.map_err(|error| format!("the next process: {error}"))?;
        self.check_lost(&served, is_killed)?;
        self.clients
            .iter_mut()
            .for_each(|client| client.find_server(&served));
        self.phases.fill(Phase::Awake);
        self.read_us.fill(self.clock.us());
        self.processes.since_step = self.notes.now.step;
        self.served = Some(served);
        Ok(())
    }

    /// A kill costs one item of each partition at most, and a stop none.
    fn check_lost(&mut self, served: &Served, was_killed: bool) -> Result<(), String> {
        let tables = served.server.tables.iter();
        let lost: u64 = tables.map(|figures| figures.table().store.lost).sum();
        let past = &mut self.processes.past;
        past.lost += lost;
        let ServerPlan { mode, table, .. } = self.scenario.server;
        // Elsewhere, that is an item of a request that was not answered.
        if lost > 0 && (mode, table) == (Mode::Cache, TableKind::Mica) {
            self.notes.lose();
        }
        let most = match was_killed {
            true => served.server.plan.partitions as u64,
            false => 0,
        };
        match lost <= most {
            true => Ok(()),
            false => Err(format!("{lost} items were lost, and {most} at most may be")),
        }
    }
}

//! Listings of all items and long replies, as the client takes them.

use glimmer_base::limits::{GATHERED_IDLE_MS_MAX, GATHERED_SLOW_MS_MAX};

use super::Streams;
use super::connection::Connection;
use super::key::ConnectionKey;
use super::phase::Phase;
use crate::admin::dump::DumpCursor;
use crate::admin::long_reply::{LongReply, Progress};
use crate::admin::observe::CloseReason;
use crate::core::Core;

impl Streams {
    /// Goes on with what a connection has to be sent: the client has taken what there was of it.
    pub fn advance_reply(&mut self, key: ConnectionKey, core: &mut Core) {
        if core.allowance.is_spent() {
            self.postpone(key);
            return;
        }
        let connection = &mut self.connections[key];
        let mut dump = match connection.phase.end_if(Phase::is_producing) {
            Some(Phase::Dump(dump)) => dump,
            Some(Phase::LongReply(report)) => return self.advance_report(key, report, core),
            _ => return,
        };
        if !dump.may_walk(&core.shared.switches, core.now.ms) {
            connection.phase.begin(Phase::Dump(dump));
            return self.await_news(key, core);
        }
        if dump.is_over(core.shared.workers()) {
            return self.take_home(dump, core);
        }
        if dump.has_right_to_gather() {
            // Its client has had nothing to take so far.
            connection.patience.begin_pace(core.now.ms);
        }
        if dump.at != core.me {
            connection.phase.begin(Phase::DumpAway);
            let to = dump.at;
            core.shared.send_dump(to, dump);
            return;
        }
        let out = connection.tx.buffer(&mut core.memory.pool);
        let (now, allowance) = (core.now, &mut core.allowance);
        dump.walk(&mut *core.engine, now, allowance, out);
        self.take_home(dump, core);
    }

    /// A dump is home again, and its connection has what was found: sends that, and the end of it.
    fn take_home(&mut self, mut dump: Box<DumpCursor>, core: &mut Core) {
        let (key, workers) = (dump.connection, core.shared.workers());
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.phase.end();
        // A server that stops lists no more items. Whatever else is asked for it answers.
        if core.is_draining && dump.is_listing() && !dump.is_over(workers) {
            connection.close_for(CloseReason::Shutdown);
        }
        if connection.closes.is_some() {
            drop(dump);
        } else if !dump.is_over(workers) {
            connection.phase.begin(Phase::Dump(dump));
        } else {
            let out = connection.tx.buffer(&mut core.memory.pool);
            let before = out.len();
            match dump.end(workers, out) {
                false => connection.phase.begin(Phase::Dump(dump)),
                // A client that has seen the end may begin the next at once.
                true => {
                    let is_awaited = dump.is_awaited();
                    drop(dump);
                    if is_awaited {
                        core.shared.announce();
                    }
                }
            }
            (core.allowance).spend_on_command(connection.tx.bytes.len() - before);
        }
        self.send_and_settle(key, core);
    }

    /// Takes the dumps that came here: walks on with those of other workers' clients, and welcomes
    /// those of its own, while the turn's allowance lasts.
    pub fn take_dumps(&mut self, core: &mut Core) {
        while !core.allowance.is_spent()
            && let Some(mut dump) = core.shared.next_dump(core.me)
        {
            if dump.home != core.me {
                let mut found = std::mem::take(&mut dump.found);
                let (now, allowance) = (core.now, &mut core.allowance);
                dump.walk(&mut *core.engine, now, allowance, &mut found);
                dump.found = found;
                let home = dump.home;
                core.shared.send_dump(home, dump);
            } else if let Some(connection) = self.connections.get_mut(dump.connection) {
                let out = connection.tx.buffer(&mut core.memory.pool);
                out.extend_from_slice(&dump.found);
                dump.found.clear();
                self.take_home(dump, core);
            }
        }
    }

    /// While others wait for the right to gather, which one client has at a time until it has taken
    /// its reply, closes that client's connection if it is with this worker and has taken little
    /// for long. `within_ms` is how long ago this was last looked at.
    pub fn give_up_gatherer(&mut self, within_ms: u64, core: &mut Core) {
        let now_ms = core.now.ms;
        if !(core.shared.switches).is_gathering_awaited(within_ms, now_ms) {
            return;
        }
        let is_stalled = |connection: &Connection| {
            let Phase::Dump(dump) = &connection.phase else {
                return false;
            };
            let patience = &connection.patience;
            let takes_little = patience.idle_ms(now_ms) >= GATHERED_IDLE_MS_MAX
                || patience.slow_ms(now_ms) >= GATHERED_SLOW_MS_MAX;
            dump.has_right_to_gather() && !connection.tx.is_empty() && takes_little
        };
        let mut connections = self.connections.iter();
        if let Some((key, _)) = connections.find(|(_, connection)| is_stalled(connection)) {
            core.tally.stalled_kicks += 1;
            self.close(key, core);
        }
    }

    /// Goes on with a connection's long reply: the client has taken what there was of it.
    fn advance_report(&mut self, key: ConnectionKey, mut report: Box<LongReply>, core: &mut Core) {
        let connection = &mut self.connections[key];
        if connection.closes.is_none() {
            let mut out = std::mem::take(connection.tx.buffer(&mut core.memory.pool));
            let progress = report.advance(core, &mut out);
            connection.tx.bytes = out;
            if progress != Progress::Complete {
                connection.phase.begin(Phase::LongReply(report));
            }
            if progress == Progress::AwaitsNews {
                self.await_news(key, core);
            }
        }
        self.send_and_settle(key, core);
    }
}

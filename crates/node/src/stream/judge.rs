//! Requests of users whose rights are named: whether they may be carried out.
//!
//! A command with several keys is judged as a whole, before its first key is taken: if one of them
//! is denied, the command is answered with one error and has no effect. Of a command that is too
//! long for that, each key is judged as it arrives. A denied key closes the connection, unless it
//! is the last one. Every denial of a user that is gone closes it.

use glimmer_proto::{Admin, After, Control, Denial, Request, Rest, Step};

use super::connection::Gate;
use super::member::Member;
use crate::core::Core;

impl Member {
    /// Its next step, which is an answer if it would have been a request that is denied.
    #[inline(never)]
    pub(super) fn next_judged<'a>(&mut self, input: &'a [u8], core: &mut Core) -> Step<'a> {
        let before = self.session.parser.rest();
        // Not by the short way to frequent requests: a second copy of that would have the compiler
        // call what it inlines for all other connections.
        let mut step = self.session.parser.next(input);
        self.denial = None;
        match &mut step {
            Step::Request { used, request } => {
                let (used, request) = (*used, *request);
                if let Some((denial, denied)) = self.deny(before, input, (used, &request), core) {
                    self.denial = Some(denial);
                    return denied;
                }
            }
            Step::Need { announced, .. } => {
                // The value of a request that will be denied gets no place in the table.
                let may_store = |key: &[u8]| self.may_store(key, core);
                if announced.is_some_and(|it| !it.with_key(may_store)) {
                    *announced = None;
                }
            }
            _ => {}
        }
        step
    }

    /// Why a request is denied, which uses this many bytes of the input, and the answer to it.
    /// `before` is what was left of a command before it.
    fn deny(
        &mut self,
        before: Rest,
        input: &[u8],
        (used, request): (usize, &Request<'_>),
        core: &Core,
    ) -> Option<(Denial, Step<'static>)> {
        if before == Rest::Here {
            // Its command was judged with its first key.
            return None;
        }
        let mut denial = match self.session.refuses && before == Rest::None {
            true => Some(Denial::OverLimit),
            false => self.judge(request, core),
        };
        let (mut rest, mut end) = (self.session.parser, used);
        while rest.rest() == Rest::Here {
            match rest.next(&input[end..]) {
                Step::Request { used, request } => {
                    denial = denial.or_else(|| self.judge(&request, core));
                    end += used;
                }
                Step::Admin { used, .. }
                | Step::Refuse { used, .. }
                | Step::Answer { used, .. }
                | Step::Queue { used, .. }
                | Step::Swallowed { used } => end += used,
                Step::Need { .. } => break,
            }
        }
        let denial = denial?;
        // Spaces, the end of the line or a sum may follow the last key.
        let (mut after, mut after_end) = (rest, end);
        while after.rest() == Rest::Arriving {
            match after.next(&input[after_end..]) {
                Step::Admin { used, .. }
                | Step::Swallowed { used }
                | Step::Refuse {
                    used,
                    then: After::Continue,
                    ..
                } => after_end += used,
                _ => {
                    // There is another key, or the rest has yet to arrive.
                    after = rest;
                    break;
                }
            }
        }
        if after.rest() == Rest::None {
            (rest, end) = (after, after_end);
        }
        let then = match rest.rest() {
            Rest::Arriving => After::Close,
            Rest::None | Rest::Here => After::Continue,
        };
        self.session.parser = rest;
        Some((denial, denial.answer(request, end, then)))
    }

    /// Why its user may not do this, if so.
    fn judge(&self, request: &Request<'_>, core: &Core) -> Option<Denial> {
        core.users.rules(self.session.user)?.judge(request)
    }

    /// Whether its user may store under a key.
    fn may_store(&self, key: &[u8], core: &Core) -> bool {
        let rules = core.users.rules(self.session.user);
        !self.session.refuses && rules.is_none_or(|rules| rules.may_store(key))
    }

    /// Why its user may not use a command without a key, if so.
    pub(super) fn judge_admin(&self, admin: &Admin<'_>, core: &mut Core) -> Option<Denial> {
        if self.session.gate != Gate::Judged {
            return None;
        }
        // The keys before a sum have been executed, and who leaves or logs in asks for nothing.
        let may_wait = !matches!(
            admin,
            Admin::Quit | Admin::Control(Control::Sum | Control::Quit | Control::Login(_), _)
        );
        let denial = match self.session.refuses && may_wait {
            true => Some(Denial::OverLimit),
            false => core.users.rules(self.session.user)?.judge_admin(admin),
        };
        denial.inspect(|denial| self.note_denial(*denial, core))
    }

    /// Whether its user is gone, so that its client has to log in again on another connection.
    pub(super) fn has_lost_user(&self, core: &Core) -> bool {
        let user = core.users.user(self.session.user);
        user.is_some_and(|user| user.is_gone)
    }

    /// Counts a request or a command that is answered with a denial.
    pub(super) fn note_denial(&self, denial: Denial, core: &mut Core) {
        let user = core.users.user(self.session.user);
        let meter = user.map(|user| &user.meter);
        match denial {
            Denial::OverLimit => {
                meter.inspect(|meter| meter.note_refused());
                core.tally.requests_over_limit += 1;
            }
            Denial::Command | Denial::Key => {
                meter.inspect(|meter| meter.note_denied());
                core.tally.requests_denied += 1;
            }
        }
        core.show_figures();
    }
}

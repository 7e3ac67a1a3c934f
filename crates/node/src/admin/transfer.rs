//! An item that gets another key (`COPY`, `RENAME`).
//!
//! Its keys may belong to two workers. The transfer travels: it reads the item where the old key
//! belongs, stores it where the new one does, and goes back to remove it. Each of the three steps
//! is one request, and other clients may come in between. An item that they have changed meanwhile
//! is not removed, as if the change had come after the transfer.
//!
//! A value is with a transfer while it travels. One transfer travels at a time, so that this takes
//! no more memory than one value.

use glimmer_base::{KeyHasher, Keyhash, Moment};
use glimmer_dispatch::Layout;
use glimmer_engine::{Done, Engine, Job, Status};
use glimmer_proto::control::{Answer, Control, Move, Moved};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::request::{Condition, Lifetime, Write};
use glimmer_proto::resp::{Form, Image, Shows, Version};
use glimmer_proto::{Request, Verb, Words};

use super::guard::DumpGuard;

/// An item on its way to another key.
pub(crate) struct Transfer {
    words: Words,
    from: Key,
    to: Key,
    replaces: bool,
    removes: bool,
    /// See [`Job::client`].
    client: i32,
    step: Step,
    /// The item, once it has been read: its [`Image`].
    image: Vec<u8>,
    /// The keys belong to two workers.
    travels: bool,
    /// The right to travel.
    guard: Option<DumpGuard>,
}

struct Key {
    bytes: Box<[u8]>,
    keyhash: Keyhash,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Store,
    Remove,
    /// Nothing: this has become of it.
    End(Moved),
}

impl Transfer {
    /// A transfer for a client of the worker `here`. Also returns the worker at which it begins.
    pub fn new(
        wanted: &Move<'_>,
        (words, client): (Words, i32),
        hasher: &KeyHasher,
        (here, layout): (usize, Layout),
    ) -> (Transfer, usize) {
        let key = |bytes: &[u8]| Key {
            bytes: bytes.into(),
            keyhash: hasher.keyhash(bytes),
        };
        let (from, to) = (key(wanted.from), key(wanted.to));
        let home = |key: &Key| layout.home(here, key.keyhash);
        let (at, travels) = (home(&from), home(&from) != home(&to));
        let transfer = Transfer {
            words,
            from,
            to,
            replaces: wanted.replaces,
            removes: wanted.removes,
            client,
            step: Step::Read,
            image: Vec::new(),
            travels,
            guard: None,
        };
        (transfer, at)
    }

    /// Takes the right to travel, if it needs one. Returns whether it may begin.
    pub fn may_begin(&mut self, take: impl FnOnce() -> Option<DumpGuard>) -> bool {
        if self.travels && self.guard.is_none() {
            self.guard = take();
        }
        !self.travels || self.guard.is_some()
    }

    /// Whether nothing is left but its answer.
    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::End(_))
    }

    /// Goes on at this worker. Returns the one at which it goes on then.
    pub fn advance(&mut self, engine: &mut dyn Engine, now: Moment, here: usize) -> usize {
        let layout = engine.layout();
        loop {
            let keyhash = match self.step {
                Step::Read | Step::Remove => self.from.keyhash,
                Step::Store => self.to.keyhash,
                Step::End(_) => return here,
            };
            let home = layout.home(here, keyhash);
            if home != here {
                return home;
            }
            if !self.take_step(engine, now) {
                return layout.map.owner(keyhash);
            }
        }
    }

    /// Returns whether the step was done; if not, the owner of the key does it.
    fn take_step(&mut self, engine: &mut dyn Engine, now: Moment) -> bool {
        let (key, verb, shows) = match self.step {
            // As in Redis, a `COPY` counts as a read, and a `RENAME` does not.
            Step::Read if self.removes => (&self.from, Verb::Look, Shows::Image),
            Step::Read => (&self.from, Verb::Get, Shows::Image),
            Step::Store => (&self.to, Verb::Write(self.write(now)), Shows::Flag),
            Step::Remove => (&self.from, self.remove(), Shows::Flag),
            Step::End(_) => return true,
        };
        let job = Job {
            keyhash: key.keyhash,
            request: Request {
                key: &key.bytes,
                verb,
                form: glimmer_proto::Form::Resp(Form {
                    version: Version::Two,
                    shows,
                }),
            },
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: self.client,
        };
        let (mut outs, mut done) = ([Vec::new()], [Done::SKIPPED]);
        engine.run(now, &[job], &mut outs, &mut done);
        if done[0].status != Status::Done {
            return false;
        }
        let [out] = outs;
        self.step = match (self.step, done[0].kind) {
            (Step::Read, _) if out.is_empty() => Step::End(Moved::NoSuchItem),
            (Step::Read, _) if self.from.bytes == self.to.bytes => Step::End(match self.replaces {
                true => Moved::Yes,
                false => Moved::Taken,
            }),
            (Step::Read, _) => {
                self.image = out;
                Step::Store
            }
            (Step::Store, Some(OutcomeKind::Stored)) if self.removes => Step::Remove,
            (Step::Store, Some(OutcomeKind::Stored)) => Step::End(Moved::Yes),
            (Step::Store, Some(OutcomeKind::TooLarge)) => Step::End(Moved::TooLarge),
            (Step::Store, Some(OutcomeKind::OutOfMemory)) => Step::End(Moved::OutOfMemory),
            (Step::Store, _) => Step::End(Moved::Taken),
            (Step::Remove | Step::End(_), _) => Step::End(Moved::Yes),
        };
        true
    }

    fn write(&self, now: Moment) -> Write<'_> {
        let image = Image::read(&self.image).expect("the item was read");
        Write {
            condition: match self.replaces {
                true => Condition::Always,
                false => Condition::Absent,
            },
            lifetime: match image.expiry_ms {
                0 => Lifetime::Unlimited,
                ms => Lifetime::UntilUnixMs(now.epoch_unix_ms + ms),
            },
            value_bytes_or_flags: image.flags,
            ..Write::of(image.value)
        }
    }

    fn remove(&self) -> Verb<'_> {
        let image = Image::read(&self.image).expect("the item was read");
        Verb::DeleteUnchanged {
            cas: image.cas,
            expiry_ms: image.expiry_ms,
            value: image.value,
        }
    }

    /// Appends the answer.
    pub fn answer(&self, out: &mut Vec<u8>) {
        let Step::End(moved) = self.step else {
            return;
        };
        let wanted = Move {
            from: &self.from.bytes,
            to: &self.to.bytes,
            replaces: self.replaces,
            removes: self.removes,
        };
        (self.words).emit(&Control::Move(wanted), Answer::Moved(moved), out);
    }

    /// Whether others may have waited for the right to travel.
    pub fn has_travelled(&self) -> bool {
        self.guard.is_some()
    }
}

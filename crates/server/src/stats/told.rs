//! What a worker tells a thread that may wait for no worker's lock, and that no worker may wait
//! for.
//!
//! Most figures are atomics, and any thread may read them. The others lie behind locks that workers
//! take: the hottest keys, the policy in force, what is watched. The thread of `--http` takes none
//! of them. Instead, the first worker writes one kind of statistics about once a second, as it does
//! when a client asks for them, and leaves the text here. If the thread is just taking the texts,
//! the worker does not wait, but leaves its text a second later.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// A kind of statistics that a worker tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    General,
    Glimmer,
    Settings,
    Dispatch,
    Accelerator,
    HotKeys,
    /// Open connections by state. No `stats` has it.
    Connections,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::General,
        Kind::Glimmer,
        Kind::Settings,
        Kind::Dispatch,
        Kind::Accelerator,
        Kind::HotKeys,
        Kind::Connections,
    ];

    /// Its name in `/api/stats` and, unless no `stats` has it, after `stats`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::General => "general",
            Kind::Glimmer => "glimmer",
            Kind::Settings => "settings",
            Kind::Dispatch => "dispatch",
            Kind::Accelerator => "accelerator",
            Kind::HotKeys => "hotkeys",
            Kind::Connections => "connections",
        }
    }
}

/// The texts that were told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts([Arc<str>; Kind::ALL.len()]);

impl Texts {
    /// The statistics of a kind, as names and values.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.0[kind as usize].lines();
        let named = lines.filter_map(|line| line.strip_prefix("STAT "));
        named.filter_map(|line| line.split_once(' '))
    }

    /// One statistic.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&str> {
        self.of(kind).find(|(it, _)| *it == name).map(|(_, it)| it)
    }

    /// One statistic that is a number.
    pub fn number(&self, kind: Kind, name: &str) -> Option<f64> {
        self.get(kind, name)?.parse().ok()
    }

    fn set(&mut self, kind: Kind, text: Vec<u8>) {
        self.0[kind as usize] = String::from_utf8_lossy(&text).into();
    }
}

/// Where the texts lie. Each is replaced as a whole.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    texts: Texts,
    /// The place of the kind that is told next.
    next: usize,
}

impl Told {
    /// The latest texts.
    pub fn texts(&self) -> Texts {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.texts.clone()
    }

    /// Tells all kinds: before there are workers.
    pub fn tell_all(&self, write: impl Fn(Kind, &mut Vec<u8>)) {
        for _ in Kind::ALL {
            self.tell_next(&write);
        }
    }

    /// Tells one kind, in turn. Does nothing if the texts are just being taken.
    pub fn tell_next(&self, write: impl Fn(Kind, &mut Vec<u8>)) {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let kind = Kind::ALL[state.next % Kind::ALL.len()];
        state.next += 1;
        let mut text = Vec::new();
        write(kind, &mut text);
        state.texts.set(kind, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(kind: Kind, text: &mut Vec<u8>) {
        let name = kind.name();
        text.extend_from_slice(format!("STAT name {name}\r\nSTAT n 7.5\r\nEND\r\n").as_bytes());
    }

    #[test]
    fn each_kind_is_told_in_its_turn() {
        let told = Told::default();
        told.tell_next(write);
        assert_eq!(told.texts().get(Kind::General, "name"), Some("general"));
        assert_eq!(told.texts().get(Kind::HotKeys, "name"), None);
        told.tell_all(write);
        for kind in Kind::ALL {
            assert_eq!(told.texts().get(kind, "name"), Some(kind.name()));
            assert_eq!(told.texts().number(kind, "n"), Some(7.5));
        }
    }

    #[test]
    fn a_worker_does_not_wait_for_who_takes_the_texts() {
        let told = Told::default();
        let taking = told.0.lock().unwrap();
        told.tell_next(|_, _| panic!("the texts are being taken"));
        drop(taking);
        told.tell_next(write);
        assert_eq!(told.texts().get(Kind::General, "name"), Some("general"));
    }
}

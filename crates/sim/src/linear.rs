//! Whether the answers of one key can be explained: whether there is an order of its operations,
//! each between its request and its answer, in which a map would have given every answer.
//!
//! The search is Wing and Gong's (Testing and verifying concurrent objects, 1993) with Lowe's
//! memoization (Testing for linearizability, 2017): a set of operations that are done, and the
//! state they led to, is looked at once. Keys are checked apart, because linearizability is local.
//!
//! An item may be lost where the server may evict. It is never lost before its expiry time, and
//! never seen after it: between both lies the time that a request and its answer were under way.
//! The same is true of a flush that was asked for a later time.
//!
//! A process of the server that is killed may lose an item that was there.
//!
//! Items are told apart by their values. A datagram that the network repeats stores its value again
//! under another CAS unique, so a compare-and-swap of such a value may find it or another item.

use crate::clock::LATE_US_MAX;
use crate::history::{Action, Answer, Call, Value};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Operations of one key at most.
pub const CALLS_MAX: usize = 128;
/// Sets of operations that are looked at before the search gives up.
const LOOKS_MAX: usize = 100_000;
/// Bytes of a value that are hashed.
const HASHED_BYTES: usize = 16;
/// How far the time that a worker goes by, in milliseconds, is from virtual time.
const CLOCK_SLACK_US: u64 = 2_000 + LATE_US_MAX;

/// What a table may do beyond what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Items may leave at any time.
    pub may_evict: bool,
    /// The server's clock may be ahead by this much.
    pub ahead_us: u64,
}

/// What came of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// The key has no item.
    Impossible,
    /// The search was given up.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    value: Value,
    /// The earliest and the latest time at which it expires.
    expires_us: Option<(u64, u64)>,
}

/// Values begin with what tells them apart, so that the rest need not be hashed.
impl Hash for Item {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let beginning = &self.value[..self.value.len().min(HASHED_BYTES)];
        (beginning, self.value.len(), self.expires_us).hash(hasher);
    }
}

/// What the server knows of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    item: Option<Item>,
    /// The earliest and the latest time of the next flush. A later flush replaces it.
    flush_us: Option<(u64, u64)>,
}

/// Looks for an order. Calls that were refused are left out, and reads without an answer.
pub fn check(calls: &[Call], rules: Rules) -> Verdict {
    let mut calls: Vec<&Call> = calls
        .iter()
        .filter(|call| call.answer != Answer::Refused)
        .filter(|call| call.action != Action::Get || call.answer != Answer::Unknown)
        .collect();
    if calls.len() > CALLS_MAX {
        return Verdict::Unknown;
    }
    calls.sort_by_key(|call| call.begun.step);
    let answered = calls.iter().enumerate();
    let answered = answered.filter(|(_, call)| call.ended.is_some());
    let needed = answered.fold(0u128, |set, (index, _)| set | 1 << index);
    let repeated = repeated(&calls);
    let mut seen: HashSet<(u128, State)> = HashSet::new();
    let mut open: Vec<(u128, State)> = vec![(0, State::default())];
    while let Some((done, state)) = open.pop() {
        if done & needed == needed {
            return Verdict::Linearizable;
        }
        if seen.len() > LOOKS_MAX {
            return Verdict::Unknown;
        }
        let is_left = |index: &usize| done & (1 << index) == 0;
        let left = (0..calls.len()).filter(is_left);
        let ends = left.clone().filter_map(|index| calls[index].ended);
        let first_end = ends.map(|end| end.step).min().unwrap_or(u64::MAX);
        for index in left.rev() {
            let call = calls[index];
            if call.begun.step < first_end {
                for next in after(&state, call, rules, &repeated) {
                    let look = (done | 1 << index, next);
                    if seen.insert(look.clone()) {
                        open.push(look);
                    }
                }
            }
        }
    }
    Verdict::Impossible
}

/// The values that more than one call stores.
fn repeated<'c>(calls: &[&'c Call]) -> HashSet<&'c [u8]> {
    let stored = calls.iter().filter_map(|call| match &call.action {
        Action::Set(value, _)
        | Action::Add(value, _)
        | Action::Replace(value, _)
        | Action::Cas(_, value) => Some(&value[..]),
        _ => None,
    });
    let mut once = HashSet::new();
    stored.filter(|value| !once.insert(*value)).collect()
}

/// The states that a call may lead to; none if its answer is wrong in this state.
fn after(state: &State, call: &Call, rules: Rules, repeated: &HashSet<&[u8]>) -> Vec<State> {
    let mut nexts = Vec::new();
    let mut add = |item: Option<Item>, flush_us| {
        let next = State { item, flush_us };
        if !nexts.contains(&next) {
            nexts.push(next);
        }
    };
    let may_return = is_about_to_expire(state, call);
    for before in possible(state, call, rules) {
        let told = &call.answer;
        let is_gone = before.item.is_none() && before.flush_us == state.flush_us;
        let flush_us = before.flush_us;
        let (item, right) = effect(&before.item, call, rules);
        match (told, &call.action) {
            (Answer::Unknown | Answer::Done, Action::Flush(1..)) => {
                add(before.item, time_after(call, rules));
            }
            // A flush at once replaces one that is to come.
            (Answer::Unknown | Answer::Done, Action::Flush(0)) => add(None, None),
            (_, Action::Lose) => {
                add(before.item, flush_us);
                add(None, flush_us);
            }
            (Answer::Unknown, _) => {
                add(item, flush_us);
                add(None, flush_us);
            }
            // What could not be stored leaves the old item, or nothing.
            (Answer::NoMemory, _) => {
                add(before.item, flush_us);
                add(None, flush_us);
            }
            _ if explains(&right, told) => {
                if may_return && is_gone && item.is_none() {
                    add(state.item.clone(), flush_us);
                }
                add(item, flush_us);
            }
            (_, Action::Cas(seen, _))
                if repeated.contains(&seen[..])
                    && before.item.is_some()
                    && explains(&Answer::Exists, told) =>
            {
                add(before.item, flush_us);
            }
            _ => {}
        }
    }
    nexts
}

/// Whether the item has expired by some clocks only. Those of the workers differ by a little, so
/// that one may find what another one did not.
fn is_about_to_expire(state: &State, call: &Call) -> bool {
    let ended_us = call.ended.map_or(u64::MAX, |ended| ended.us);
    let expires_us = state.item.as_ref().and_then(|item| item.expires_us);
    expires_us.is_some_and(|(first_us, last_us)| first_us <= ended_us && call.begun.us < last_us)
}

/// The states that the call may have found: an item may have expired or left, and a flush may have
/// happened.
fn possible(state: &State, call: &Call, rules: Rules) -> Vec<State> {
    let ended_us = call.ended.map_or(u64::MAX, |ended| ended.us);
    let mut states = Vec::new();
    let (mut may_wait, mut may_flush) = (true, false);
    if let Some((first_us, last_us)) = state.flush_us {
        may_wait = call.begun.us < last_us;
        may_flush = ended_us >= first_us;
    }
    if may_flush {
        states.push(State::default());
    }
    if !may_wait {
        return states;
    }
    let (mut may_be_there, mut may_be_gone) = (true, rules.may_evict);
    if let Some(Item { expires_us, .. }) = &state.item {
        if let Some((first_us, last_us)) = expires_us {
            may_be_there = call.begun.us < *last_us;
            may_be_gone |= ended_us >= *first_us;
        }
    } else {
        may_be_gone = false;
    }
    if may_be_there {
        states.push(state.clone());
    }
    if may_be_gone {
        states.push(State {
            item: None,
            flush_us: state.flush_us,
        });
    }
    states
}

fn explains(right: &Answer, told: &Answer) -> bool {
    right == told
        || (*told == Answer::NotStored && matches!(right, Answer::Exists | Answer::Absent))
}

/// What a map does, and answers.
fn effect(before: &Option<Item>, call: &Call, rules: Rules) -> (Option<Item>, Answer) {
    let item = |value: &Value| {
        Some(Item {
            value: value.clone(),
            expires_us: time_after(call, rules),
        })
    };
    let with_value = |old: &Item, value: Value| {
        Some(Item {
            value,
            expires_us: old.expires_us,
        })
    };
    let seen = before.as_ref().map(|item| item.value.clone());
    match (&call.action, before) {
        (Action::Get, _) => (before.clone(), Answer::Value(seen)),
        (Action::GetAndTouch(_), Some(old)) => (item(&old.value), Answer::Value(seen)),
        (Action::GetAndTouch(_), None) => (None, Answer::Value(None)),
        (Action::Set(value, _), _)
        | (Action::Add(value, _), None)
        | (Action::Replace(value, _), Some(_)) => (item(value), Answer::Done),
        (Action::Add(..), Some(_)) => (before.clone(), Answer::Exists),
        (Action::Cas(seen, value), Some(old)) => match old.value == *seen {
            true => (item(value), Answer::Done),
            false => (before.clone(), Answer::Exists),
        },
        (Action::Append(value), Some(old)) => {
            let joined: Vec<u8> = [&old.value[..], &value[..]].concat();
            (with_value(old, joined.into()), Answer::Done)
        }
        (Action::Delete, Some(_)) => (None, Answer::Done),
        (Action::Increment(delta) | Action::Count(delta), Some(old)) => {
            let text = std::str::from_utf8(&old.value).unwrap_or_default();
            let number = text.trim_end().parse::<u64>().unwrap_or(0);
            let number = number.wrapping_add(*delta);
            let value = number.to_string().into_bytes();
            (with_value(old, value.into()), Answer::Number(number))
        }
        (Action::Count(delta), None) => {
            let value = delta.to_string().into_bytes();
            (item(&value.into()), Answer::Number(*delta))
        }
        (Action::Touch(_), Some(old)) => (item(&old.value), Answer::Done),
        (Action::Flush(_) | Action::Lose, _) => (None, Answer::Done),
        (_, None) => (None, Answer::Absent),
    }
}

/// The earliest and the latest time at which what the call stores expires, or its flush happens.
fn time_after(call: &Call, rules: Rules) -> Option<(u64, u64)> {
    let slack_us = CLOCK_SLACK_US + rules.ahead_us;
    let after_s = match &call.action {
        Action::Set(_, after_s) | Action::Add(_, after_s) | Action::Replace(_, after_s) => *after_s,
        Action::Touch(after_s) | Action::GetAndTouch(after_s) | Action::Flush(after_s) => *after_s,
        _ => 0,
    };
    (after_s > 0).then(|| {
        let after_us = u64::from(after_s) * 1_000_000;
        let ended_us = call.ended.map_or(u64::MAX / 2, |ended| ended.us);
        let first_us = (call.begun.us + after_us).saturating_sub(slack_us);
        (first_us, ended_us + after_us + slack_us)
    })
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;

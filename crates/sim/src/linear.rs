//! Whether the answers of one key can be explained: whether there is an order of its operations,
//! each between its request and its answer, in which a map would have given every answer.
//!
//! The search is Wing and Gong's (Testing and verifying concurrent objects, 1993) with Lowe's
//! memoization (Testing for linearizability, 2017): a set of operations that are done, and the
//! state they led to, is looked at once. Keys are checked apart, because linearizability is local.
//!
//! An item may be lost where the server may evict. It is never lost before its expiry time, and
//! never seen after it: between both lies the time that a request and its answer were under way.

use crate::history::{Action, Answer, Call, Value};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Operations of one key at most.
pub const CALLS_MAX: usize = 128;
/// Sets of operations that are looked at before the search gives up.
const LOOKS_MAX: usize = 100_000;
/// Bytes of a value that are hashed.
const HASHED_BYTES: usize = 16;
/// How far the server's clock, which counts milliseconds, is from virtual time.
const CLOCK_SLACK_US: u64 = 2_000;

/// What a table may do beyond what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Items may leave at any time.
    pub may_evict: bool,
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

type State = Option<Item>;

/// Looks for an order. Calls that were refused are left out.
pub fn check(calls: &[Call], rules: Rules) -> Verdict {
    let mut calls: Vec<&Call> = calls
        .iter()
        .filter(|call| call.answer != Answer::Refused)
        .collect();
    if calls.len() > CALLS_MAX {
        return Verdict::Unknown;
    }
    calls.sort_by_key(|call| call.begun.step);
    let answered = calls.iter().enumerate();
    let answered = answered.filter(|(_, call)| call.ended.is_some());
    let needed = answered.fold(0u128, |set, (index, _)| set | 1 << index);
    let mut seen: HashSet<(u128, State)> = HashSet::new();
    let mut open: Vec<(u128, State)> = vec![(0, None)];
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
                for next in after(&state, call, rules) {
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

/// The states that a call may lead to; none if its answer is wrong in this state.
fn after(state: &State, call: &Call, rules: Rules) -> Vec<State> {
    let mut nexts = Vec::new();
    let mut add = |next: State| {
        if !nexts.contains(&next) {
            nexts.push(next);
        }
    };
    for before in possible(state, call, rules) {
        let told = &call.answer;
        let carried_out = effect(&before, call);
        match told {
            Answer::Unknown => {
                add(carried_out.0);
                add(None);
            }
            // What could not be stored leaves the old item, or nothing.
            Answer::NoMemory => {
                add(before.clone());
                add(None);
            }
            _ if explains(&carried_out.1, told) => add(carried_out.0),
            _ => {}
        }
    }
    nexts
}

/// The state as the call may have found it: an item may have expired or left.
fn possible(state: &State, call: &Call, rules: Rules) -> Vec<State> {
    let Some(item) = state else {
        return vec![None];
    };
    let ended_us = call.ended.map_or(u64::MAX, |ended| ended.us);
    let (mut may_be_there, mut may_be_gone) = (true, rules.may_evict);
    if let Some((first_us, last_us)) = item.expires_us {
        may_be_there = call.begun.us < last_us;
        may_be_gone |= ended_us >= first_us;
    }
    let there = may_be_there.then(|| state.clone());
    let gone = may_be_gone.then_some(None);
    there.into_iter().chain(gone).collect()
}

fn explains(right: &Answer, told: &Answer) -> bool {
    right == told
        || (*told == Answer::NotStored && matches!(right, Answer::Exists | Answer::Absent))
}

/// What a map does, and answers.
fn effect(before: &State, call: &Call) -> (State, Answer) {
    let item = |value: &Value, expiry_s: u32| {
        Some(Item {
            value: value.clone(),
            expires_us: expiry(call, expiry_s),
        })
    };
    let with_value = |old: &Item, value: Value| {
        Some(Item {
            value,
            expires_us: old.expires_us,
        })
    };
    match (&call.action, before) {
        (Action::Get, _) => {
            let value = before.as_ref().map(|item| item.value.clone());
            (before.clone(), Answer::Value(value))
        }
        (Action::Set(value, expiry_s), _)
        | (Action::Add(value, expiry_s), None)
        | (Action::Replace(value, expiry_s), Some(_)) => (item(value, *expiry_s), Answer::Done),
        (Action::Add(..), Some(_)) => (before.clone(), Answer::Exists),
        (Action::Cas(seen, value), Some(old)) => match old.value == *seen {
            true => (item(value, 0), Answer::Done),
            false => (before.clone(), Answer::Exists),
        },
        (Action::Append(value), Some(old)) => {
            let joined: Vec<u8> = [&old.value[..], &value[..]].concat();
            (with_value(old, joined.into()), Answer::Done)
        }
        (Action::Delete, Some(_)) => (None, Answer::Done),
        (Action::Increment(delta), Some(old)) => {
            let text = std::str::from_utf8(&old.value).unwrap_or_default();
            let number = text.trim_end().parse::<u64>().unwrap_or(0);
            let number = number.wrapping_add(*delta);
            let value = number.to_string().into_bytes();
            (with_value(old, value.into()), Answer::Number(number))
        }
        (Action::Touch(expiry_s), Some(old)) => {
            let touched = item(&old.value, *expiry_s);
            (touched, Answer::Done)
        }
        (Action::Flush, _) => (None, Answer::Done),
        (_, None) => (None, Answer::Absent),
    }
}

/// The earliest and the latest time at which what the call stores expires.
fn expiry(call: &Call, expiry_s: u32) -> Option<(u64, u64)> {
    (expiry_s > 0).then(|| {
        let after_us = u64::from(expiry_s) * 1_000_000;
        let ended_us = call.ended.map_or(u64::MAX / 2, |ended| ended.us);
        let first_us = (call.begun.us + after_us).saturating_sub(CLOCK_SLACK_US);
        (first_us, ended_us + after_us + CLOCK_SLACK_US)
    })
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;

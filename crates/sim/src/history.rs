//! What was asked of which key and when, and what came of it.

use std::fmt;
use std::sync::Arc;

/// A value. Each write stores a different value, so that a read shows which write it saw.
pub type Value = Arc<[u8]>;

/// A point of a run: the number of the step, and virtual time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Steps are numbered in the order in which they happened.
    pub step: u64,
    /// Virtual time.
    pub us: u64,
}

/// What was asked of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read.
    Get,
    /// Store in any case, with an expiry time in seconds, or 0.
    Set(Value, u32),
    /// Store unless there is an item.
    Add(Value, u32),
    /// Store if there is an item.
    Replace(Value, u32),
    /// Add to the end of the value.
    Append(Value),
    /// Store if the item is still the one with the first value.
    Cas(Value, Value),
    /// Remove.
    Delete,
    /// Add to a number.
    Increment(u64),
    /// Add to a number, or begin with this one.
    Count(u64),
    /// Give the item another expiry time, in seconds.
    Touch(u32),
    /// Read, and give the item another expiry time, in seconds.
    GetAndTouch(u32),
    /// Remove everything, after this many seconds.
    Flush(u32),
    /// A process of the server was killed, and items may be lost.
    Lose,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a read.
    Value(Option<Value>),
    /// It is done.
    Done,
    /// The number, after it was changed.
    Number(u64),
    /// There is an item that should not be there, or another one.
    Exists,
    /// There is no item.
    Absent,
    /// `NOT_STORED`: the condition does not hold, whichever it is.
    NotStored,
    /// There is no memory for it.
    NoMemory,
    /// The answer was lost: it may have happened or not.
    Unknown,
    /// It was refused and has not happened.
    Refused,
}

/// One request for one key.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asked.
    pub client: usize,
    /// Of which key.
    pub key: String,
    /// What was asked.
    pub action: Action,
    /// When it was asked.
    pub begun: Stamp,
    /// When it was answered, if it was.
    pub ended: Option<Stamp>,
    /// What was answered.
    pub answer: Answer,
}

/// The calls that concern a key: those that name it, and those that concern every key.
pub fn of_key(calls: &[Call], key: &str) -> Vec<Call> {
    let of_all = |call: &Call| matches!(call.action, Action::Flush(_) | Action::Lose);
    let concerns = |call: &&Call| call.key == key || of_all(call);
    calls.iter().filter(concerns).cloned().collect()
}

/// The keys that are named, in order.
pub fn keys(calls: &[Call]) -> Vec<String> {
    let mut keys: Vec<String> = calls.iter().map(|call| call.key.clone()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| !key.is_empty());
    keys
}

/// A value as people read it: its beginning, and its length if it is long.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 24;
        let head = &self.0[..self.0.len().min(SHOWN_MAX)];
        write!(f, "\"{}\"", head.escape_ascii())?;
        if self.0.len() > SHOWN_MAX {
            write!(f, "... ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = |f: &mut fmt::Formatter<'_>, name: &str, value: &Value, expiry_s: u32| {
            write!(f, "{name} {}", Shown(value))?;
            match expiry_s {
                0 => Ok(()),
                _ => write!(f, " for {expiry_s} s"),
            }
        };
        match self {
            Action::Get => write!(f, "get"),
            Action::Set(value, expiry_s) => until(f, "set", value, *expiry_s),
            Action::Add(value, expiry_s) => until(f, "add", value, *expiry_s),
            Action::Replace(value, expiry_s) => until(f, "replace", value, *expiry_s),
            Action::Append(value) => write!(f, "append {}", Shown(value)),
            Action::Cas(seen, value) => write!(f, "cas {} to {}", Shown(seen), Shown(value)),
            Action::Delete => write!(f, "delete"),
            Action::Increment(delta) => write!(f, "increment by {delta}"),
            Action::Count(delta) => write!(f, "count {delta}"),
            Action::Touch(expiry_s) => write!(f, "touch for {expiry_s} s"),
            Action::GetAndTouch(expiry_s) => write!(f, "get and touch for {expiry_s} s"),
            Action::Lose => write!(f, "lose items"),
            Action::Flush(0) => write!(f, "flush everything"),
            Action::Flush(after_s) => write!(f, "flush everything in {after_s} s"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Value(Some(value)) => write!(f, "{}", Shown(value)),
            Answer::Value(None) => write!(f, "no item"),
            Answer::Done => write!(f, "done"),
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Exists => write!(f, "there is an item, or another one"),
            Answer::Absent => write!(f, "there is no item"),
            Answer::NotStored => write!(f, "not stored"),
            Answer::NoMemory => write!(f, "no memory"),
            Answer::Unknown => write!(f, "no answer"),
            Answer::Refused => write!(f, "refused"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u64| us as f64 / 1000.0;
        let (begun, ended) = (self.begun, self.ended);
        write!(f, "{:>6} ", begun.step)?;
        match ended {
            Some(ended) => write!(f, "{:>6} ", ended.step)?,
            None => write!(f, "{:>6} ", "")?,
        }
        write!(f, "{:>10.3} ms  ", ms(begun.us))?;
        match self.action {
            Action::Lose => write!(f, "the server ")?,
            _ => write!(f, "client {:<2}  ", self.client)?,
        }
        write!(f, "{:<5} {} -> {}", self.key, self.action, self.answer)
    }
}

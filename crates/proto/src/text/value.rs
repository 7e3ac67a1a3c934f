//! The value after the line of a store.

use super::line::Line;
use super::tokens::LINE_END;
use crate::Announced;

/// Where the value of a store is.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// In the input, after the line. If it has not arrived as a whole and there is no memory for
    /// it, it is refused.
    Input { no_memory: bool },
    /// The caller has taken it out of the input, in which its line end follows the line.
    Taken { no_memory: bool },
}

/// What has arrived of a value and its line end.
pub(crate) enum Body<'a> {
    /// Both. The value is empty if the caller has taken it.
    Whole { used: usize, value: &'a [u8] },
    /// What follows the value is not a line end.
    Unterminated { used: usize },
    /// Not both; this many bytes of input are needed.
    Short { need: usize },
    /// There is no memory for the value, and these bytes of it are yet to be swallowed.
    Refused { left: usize },
}

impl Source {
    /// The announcement of a large value, unless the caller has taken it already.
    pub fn announce<'a>(self, announced: Announced<'a>) -> Option<Announced<'a>> {
        match self {
            Source::Input { .. } => announced.medium(),
            Source::Taken { .. } => None,
        }
    }

    /// What has arrived of a value of this many bytes after this line.
    #[inline(always)]
    pub fn body<'a>(self, line: &Line<'a>, value_bytes: usize) -> Body<'a> {
        let (left, no_memory) = match self {
            Source::Input { no_memory } => (value_bytes, no_memory),
            Source::Taken { no_memory } => (0, no_memory),
        };
        let used = line.used + left + LINE_END.len();
        let Some(body) = line.input.get(line.used..used) else {
            return match no_memory {
                true => Body::Refused { left },
                false => Body::Short { need: used },
            };
        };
        let (value, end) = body.split_at(left);
        match end == LINE_END {
            true => Body::Whole { used, value },
            false => Body::Unterminated { used },
        }
    }
}

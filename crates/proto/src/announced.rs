//! A large value that has not arrived as a whole.

use crate::meta::base64;
use glimmer_base::limits::{DRAFT_BYTES_MIN, MEDIUM_BYTES_MIN};

/// A store whose value has not arrived as a whole. Nothing but the value can still lead to its
/// refusal, and in RESP the arguments after the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced<'a> {
    /// As [`Request::key`](crate::Request::key).
    pub key: &'a [u8],
    /// The key must be decoded before use.
    pub has_base64_key: bool,
    /// Where the value begins in the input.
    pub value_at: usize,
    /// Length of the value in bytes, without its line end. At least [`MEDIUM_BYTES_MIN`].
    pub value_bytes: usize,
}

impl<'a> Announced<'a> {
    /// The announcement, if the value is large.
    pub(crate) fn large(self) -> Option<Announced<'a>> {
        (self.value_bytes >= DRAFT_BYTES_MIN).then_some(self)
    }

    /// The announcement, unless the value is small.
    pub(crate) fn medium(self) -> Option<Announced<'a>> {
        (self.value_bytes >= MEDIUM_BYTES_MIN).then_some(self)
    }

    /// Passes the decoded key to `take`.
    pub fn with_key<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        base64::with_key(self.key, self.has_base64_key, take)
    }
}

//! What a request says about its reply.

/// What a request of the classic text protocol says about its reply; see [`crate::Form::Text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Show the CAS unique.
    pub cas: bool,
    /// This is the last key of its command.
    pub last: bool,
    /// The client wants no answer. In a retrieval of several keys: a key whose expiry time cannot
    /// be set is left out like a missing one, because an error line would end the reply early.
    pub quiet: bool,
}

impl Reply {
    /// The reply to a command that names one key and shows nothing of its item.
    #[inline(always)]
    pub fn to_one(quiet: bool) -> Reply {
        Reply {
            cas: false,
            last: true,
            quiet,
        }
    }
}

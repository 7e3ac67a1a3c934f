//! Commands with several keys that are answered with one number.

/// What the parts of a command come to that is answered with one sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Parts that found an item, or stored one.
    pub done: u32,
    /// Parts for which there was no memory.
    pub failed: u32,
}

//! The key of a connection in its worker's table.

use slotmap::Key;

slotmap::new_key_type! {
    /// A connection's slot and generation in its worker's table.
    pub(crate) struct ConnectionKey;
}

impl ConnectionKey {
    /// Slot and generation as one number.
    pub fn number(self) -> u64 {
        self.data().as_ffi()
    }
}

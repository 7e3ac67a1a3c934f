//! What a worker calls a connection by.

slotmap::new_key_type! {
    /// A connection's slot and generation in its worker's table.
    pub(crate) struct ConnectionKey;
}

//! What is stored for a key.

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Item {
    pub value: Vec<u8>,
    pub flags: u32,
    pub cas: u64,
}

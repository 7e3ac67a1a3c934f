//! Memory for buffers: how much there is, and how much is used. `stream::relief` decides which
//! connection gives up memory when it is short.

pub(crate) mod homeward;
pub(crate) mod memory;
pub(crate) mod pool;

//! Memory for buffers: what it costs, and what there is of it. Which connection gives memory up
//! when it is short is decided in `stream::relief`.

pub(crate) mod memory;
pub(crate) mod pool;

//! What memory for buffers costs, who holds it, and who gives it up when it is short.

pub(crate) mod pool;
mod relief;

//! What needs unsafe code, behind safe faces.

pub mod events;
pub mod headers;
pub mod heap;
pub mod mmsg;
pub mod refusals;
pub mod train;

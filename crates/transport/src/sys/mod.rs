//! What needs unsafe code, behind safe faces.

pub mod mmsg;
pub mod train;

//! Where items' bytes live: the circular log, the layout of an entry in it, and the offsets that
//! name entries.

mod circular_log;
mod item;
mod offset;

pub use circular_log::CircularLog;
pub use item::{CAS_MAX, Item, Layout, NewItem, Value};
pub(crate) use item::{Header, write_expiry, write_filler, write_item};
pub use offset::{Geometry, Offset};

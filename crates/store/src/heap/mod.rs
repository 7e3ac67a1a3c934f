//! Where items' bytes live: the circular log, the layout of an entry in it, and the offsets that
//! name entries.

mod at_rest;
mod bytes;
mod cas_sequence;
mod circular_log;
mod history;
mod item;
mod offset;
pub mod segregated_fits;
pub mod slab;
mod wide;
mod write;

pub use at_rest::ItemAtRest;
pub use cas_sequence::CasSequence;
pub use circular_log::CircularLog;
pub use history::{CAS_MAX, History, Marks};
pub(crate) use item::Header;
pub use item::{Item, Layout, Value};
pub use offset::{Geometry, Offset};
pub use write::{NewItem, Put};
pub(crate) use write::{
    can_amend, draft_layout, write_amended, write_draft, write_drafted, write_filler, write_item,
    write_over, write_reserved, write_value_over,
};

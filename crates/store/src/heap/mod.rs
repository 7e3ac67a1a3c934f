//! Where items' bytes live: the circular log, the layout of an item in it, and the offsets that
//! name items.

mod begins;
mod bytes;
mod cas_sequence;
mod circular_log;
mod history;
mod in_place;
mod item;
mod layout;
mod offset;
mod put;
pub mod segregated_fits;
pub mod slab;
mod value;
mod wide;
mod word_sink;
mod write;

pub(crate) use begins::Begins;
pub(crate) use bytes::{append as append_bytes, store as store_bytes};
pub use cas_sequence::CasSequence;
pub use circular_log::CircularLog;
pub use history::{CAS_MAX, History, Marks};
pub(crate) use in_place::bytes_in_place;
pub(crate) use item::Header;
pub use item::Item;
pub(crate) use layout::BIRTH_WORDS_MAX;
pub use layout::Layout;
pub use offset::{Geometry, Offset};
pub use put::{NewItem, Put};
pub use value::Value;
pub(crate) use write::{
    can_amend, changes_length, draft_layout, only_grows, unsettle, write_amended, write_announced,
    write_behind, write_draft, write_drafted, write_filler, write_grown, write_item, write_over,
    write_reserved, write_value_over,
};

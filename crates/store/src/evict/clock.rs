//! CLOCK: least recently used, approximately, with one bit per item.
//!
//! A use of an item sets its bit. The hand that looks for room clears the bit of an item that was
//! used, and evicts the first item that was not. In a circular log the hand is the head, and an
//! item that stays is put at the tail: FIFO with reinsertion, or *second chance*. In the MemC3
//! table (MemC3 §4.2) each slab class has a hand that goes round the slabs of the class, and an
//! item that stays lies where it lay.

use super::{AtHead, Rule};

/// An item that was read since the hand last passed it gets a second chance.
pub const CLOCK: Rule = Rule {
    name: "clock",
    summary: "an item that was read since it came to the tail moves back there once",
    source: "Corbató 1968; MemC3 §4.2",
    reads_counted: 1,
    is_paced: true,
    at_head: |item| match item.reads {
        0 => AtHead::Evict,
        _ => AtHead::Keep {
            log: item.log,
            reads: 0,
        },
    },
    ..Rule::ONE_LOG
};

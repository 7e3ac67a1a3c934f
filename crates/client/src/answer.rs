//! Converts replies into the results of operations.

use crate::Failure;
use crate::error::{CountError, Failed, GetError, RemoveError, StoreError};
use glimmer_proto::native::{Reply, Status};

/// An item as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// The 32-bit flags stored with the value.
    pub flags: u32,
    /// The CAS unique for a compare-and-swap; 0 if it was not requested.
    pub cas: u64,
}

/// A reply that owns its bytes.
pub(crate) struct Told {
    status: Status,
    item: Item,
    number: Option<u64>,
}

/// The result of a request.
pub(crate) type Answer = Result<Told, Failed>;

impl Told {
    pub fn of(reply: &Reply<'_>) -> Told {
        Told {
            status: reply.status,
            item: Item {
                value: reply.value.to_vec(),
                flags: reply.flags,
                cas: reply.cas.unwrap_or(0),
            },
            number: reply.number,
        }
    }
}

/// The result of a read: the item, or `None` if there is no item.
pub(crate) fn found(answer: Answer) -> Result<Option<Item>, GetError> {
    let told = answer?;
    match told.status {
        Status::Found => Ok(Some(told.item)),
        Status::NotFound => Ok(None),
        _ => Err(GetError::Protocol),
    }
}

/// The result of a store: whether the item was stored.
pub(crate) fn stored(answer: Answer) -> Result<bool, StoreError> {
    match answer.map(|told| told.status) {
        Ok(Status::Stored) => Ok(true),
        Ok(Status::Exists | Status::NotFound) => Ok(false),
        Ok(Status::TooLarge) => Err(StoreError::TooLarge),
        Err(failed) if failed.failure == Failure::TooLarge => Err(StoreError::TooLarge),
        Ok(Status::OutOfMemory) => Err(StoreError::OutOfMemory),
        Ok(_) => Err(StoreError::Protocol),
        Err(failed) => Err(failed.into()),
    }
}

/// The result of an increment or decrement: the new number, or `None` if there is no item.
pub(crate) fn counted(answer: Answer) -> Result<Option<u64>, CountError> {
    let told = answer?;
    match (told.status, told.number) {
        (Status::Counted, Some(number)) => Ok(Some(number)),
        (Status::NotFound, _) => Ok(None),
        (Status::NotANumber, _) => Err(CountError::NotANumber),
        (Status::OutOfMemory, _) => Err(CountError::OutOfMemory),
        _ => Err(CountError::Protocol),
    }
}

/// The result of a delete or touch: whether there was an item.
pub(crate) fn removed(answer: Answer) -> Result<bool, RemoveError> {
    match answer?.status {
        Status::Deleted | Status::Touched => Ok(true),
        Status::NotFound => Ok(false),
        _ => Err(RemoveError::Protocol),
    }
}

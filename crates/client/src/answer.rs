//! From replies to what operations return.

use crate::Failure;
use crate::error::{CountError, Failed, GetError, RemoveError, StoreError};
use glimmer_proto::native::{Reply, Status};

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// The 32 bits that were stored with it.
    pub flags: u32,
    /// What a compare-and-swap compares; 0 if it was not asked for.
    pub cas: u64,
}

/// A reply in memory of its own.
pub(crate) struct Told {
    status: Status,
    item: Item,
    number: Option<u64>,
}

/// What came of a request.
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

/// What a read returns: the item, if there is one.
pub(crate) fn found(answer: Answer) -> Result<Option<Item>, GetError> {
    let told = answer?;
    match told.status {
        Status::Found => Ok(Some(told.item)),
        Status::NotFound => Ok(None),
        _ => Err(GetError::Protocol),
    }
}

/// What a store returns: whether it did.
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

/// What a calculation returns: the result, if there is an item.
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

/// What a removal or a touch returns: whether there was an item.
pub(crate) fn removed(answer: Answer) -> Result<bool, RemoveError> {
    match answer?.status {
        Status::Deleted | Status::Touched => Ok(true),
        Status::NotFound => Ok(false),
        _ => Err(RemoveError::Protocol),
    }
}

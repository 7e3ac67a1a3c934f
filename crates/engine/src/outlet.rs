//! Replies that leave from the table's memory, without a copy in a reply buffer.
//!
//! A worker that alone may write a partition can send a value from where it lies: while it sends,
//! it changes nothing. Beside other writers the table [lends](glimmer_store::table::Loan) the value
//! for as long. Nothing refers to the value after that, so that the item may change or leave the
//! table with the next request.

/// Where replies may leave at once, while their batch is being executed.
pub trait Outlet {
    /// What is to become of a reply with a large value, which belongs at the end of this reply
    /// buffer.
    fn offer(&self, out: u32) -> Offer;

    /// Sends what is in the reply buffer, with a value inserted at offset `at`. Leaves what could
    /// not be sent in the buffer. Only after [`Offer::Send`].
    fn send(&mut self, out: u32, replies: &mut Vec<u8>, at: usize, value: &[u8]);
}

/// What is to become of a reply with a large value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is appended to the reply buffer.
    Copy,
    /// It is sent at once.
    Send,
    /// It has to wait: the client has been sent its share of this batch.
    Wait,
}

/// Every reply goes into its buffer.
#[derive(Clone, Copy, Debug)]
pub struct NoOutlet;

impl Outlet for NoOutlet {
    fn offer(&self, _out: u32) -> Offer {
        Offer::Copy
    }

    fn send(&mut self, _out: u32, _replies: &mut Vec<u8>, _at: usize, _value: &[u8]) {
        unreachable!("nothing was to be sent")
    }
}

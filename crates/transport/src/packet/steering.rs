//! Steering: which of the devices that share an address receives a datagram.

/// One instruction of a classic BPF program, as in Linux' `struct sock_filter`. The program runs on
/// the content of each datagram, or of the first one of a segment batch, and returns the number of
/// the device. With any other number the kernel chooses the device by the addresses. A load behind
/// the end of the datagram ends the program with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip if the comparison is true.
    pub if_true: u8,
    /// Instructions to skip if it is false.
    pub if_false: u8,
    /// The operand.
    pub operand: u32,
}

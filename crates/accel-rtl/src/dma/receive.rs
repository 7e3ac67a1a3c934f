//! The ports of `dma_rx.sv`. The structs are those of `shims/dma_rx.cpp`.
#![allow(missing_docs, reason = "the ports are described in dma_rx.sv")]

use crate::memory::Line;
use crate::model::Ports;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct In {
    pub rst: u64,
    pub in_valid: u64,
    pub in_data: u64,
    pub in_keep: u64,
    pub in_last: u64,
    pub post_valid: u64,
    pub post_line: u64,
    pub count_ready: u64,
    pub irq_clear: u64,
    pub mem_req_ready: u64,
    pub mem_rsp_valid: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub in_ready: u64,
    pub post_ready: u64,
    pub count_valid: u64,
    pub count_data: u64,
    pub read_pointer: u64,
    pub current_pointer: u64,
    pub write_pointer: u64,
    pub irq: u64,
    pub mem_req_valid: u64,
    pub mem_req_addr: u64,
    pub mem_req_data: Line,
    pub mem_rsp_ready: u64,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub enum ReceivePorts {}

// SAFETY: both structs are `repr(C)`, consist of `u64`, and repeat those of `shims/dma_rx.cpp`
// field by field.
unsafe impl Ports for ReceivePorts {
    type In = In;
    type Out = Out;
}

//! The ports of `dma_tx.sv`. The structs are those of `shims/dma_tx.cpp`.
#![allow(missing_docs, reason = "the ports are described in dma_tx.sv")]

use crate::memory::Line;
use crate::model::Ports;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct In {
    pub rst: u64,
    pub post_valid: u64,
    pub post_addr: u64,
    pub post_count: u64,
    pub irq_clear: u64,
    pub mem_req_ready: u64,
    pub mem_rsp_valid: u64,
    pub mem_rsp_data: Line,
    pub out_ready: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub post_ready: u64,
    pub read_pointer: u64,
    pub current_pointer: u64,
    pub write_pointer: u64,
    pub irq: u64,
    pub mem_req_valid: u64,
    pub mem_req_addr: u64,
    pub mem_rsp_ready: u64,
    pub out_valid: u64,
    pub out_data: u64,
    pub out_keep: u64,
    pub out_last: u64,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub enum TransmitPorts {}

// SAFETY: both structs are `repr(C)`, consist of `u64`, and repeat those of `shims/dma_tx.cpp`
// field by field.
unsafe impl Ports for TransmitPorts {
    type In = In;
    type Out = Out;
}

//! The ports of `kv_top.sv`. The structs are those of `shims/kv_top.cpp`.
#![allow(missing_docs, reason = "the ports are described in kv_top.sv")]

use crate::memory::Line;
use crate::model::Ports;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct In {
    pub rst: u64,
    pub host_mac: u64,
    pub host_ip: u64,
    pub host_port: u64,
    pub source_net: u64,
    pub source_mask: u64,
    pub reply_bytes_max: u64,
    pub patience: u64,
    pub rx_valid: u64,
    pub rx_data: u64,
    pub rx_keep: u64,
    pub rx_last: u64,
    pub tx_ready: u64,
    pub cmd_valid: u64,
    pub cmd_funct7: u64,
    pub cmd_rs1: u64,
    pub cmd_rs2: u64,
    pub rsp_ready: u64,
    pub rx_post_valid: u64,
    pub rx_post_line: u64,
    pub rx_count_ready: u64,
    pub rx_irq_clear: u64,
    pub tx_post_valid: u64,
    pub tx_post_addr: u64,
    pub tx_post_count: u64,
    pub tx_irq_clear: u64,
    pub mem_req_ready: u64,
    pub mem_rsp_valid: u64,
    pub mem_rsp_data: Line,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub rx_ready: u64,
    pub tx_valid: u64,
    pub tx_data: u64,
    pub tx_keep: u64,
    pub tx_last: u64,
    pub cmd_ready: u64,
    pub rsp_valid: u64,
    pub rsp_rd: u64,
    pub write_mode: u64,
    pub lookup_idle: u64,
    pub rx_post_ready: u64,
    pub rx_count_valid: u64,
    pub rx_count_data: u64,
    pub rx_read_pointer: u64,
    pub rx_current_pointer: u64,
    pub rx_write_pointer: u64,
    pub rx_irq: u64,
    pub tx_post_ready: u64,
    pub tx_read_pointer: u64,
    pub tx_current_pointer: u64,
    pub tx_write_pointer: u64,
    pub tx_irq: u64,
    pub mem_req_valid: u64,
    pub mem_req_addr: u64,
    pub mem_req_write: u64,
    pub mem_req_data: Line,
    pub mem_rsp_ready: u64,
    pub hits: u64,
    pub misses: u64,
    pub bypassed: u64,
    pub too_long: u64,
    pub dropped_main: u64,
    pub dropped_defer: u64,
    pub jumbos: u64,
    pub runts: u64,
    pub defer_high_water: u64,
    pub has_wrong_tag: u64,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub enum TopPorts {}

// SAFETY: both structs are `repr(C)`, consist of `u64`, and repeat those of
// `shims/kv_top.cpp` field by field.
unsafe impl Ports for TopPorts {
    type In = In;
    type Out = Out;
}

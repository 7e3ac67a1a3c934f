//! The ports of `lookup.sv`. The structs are those of `shims/lookup.cpp`.
#![allow(missing_docs, reason = "the ports are described in lookup.sv")]

use crate::memory::Line;
use crate::model::Ports;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct In {
    pub rst: u64,
    pub key_len_valid: u64,
    pub key_len: u64,
    pub key_tag: u64,
    pub key_valid: u64,
    pub key_data: u64,
    pub key_keep: u64,
    pub key_last: u64,
    pub val_len_ready: u64,
    pub val_ready: u64,
    pub cmd_valid: u64,
    pub cmd_funct7: u64,
    pub cmd_rs1: u64,
    pub cmd_rs2: u64,
    pub rsp_ready: u64,
    pub mem_req_ready: u64,
    pub mem_rsp_valid: u64,
    pub mem_rsp_data: Line,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub key_len_ready: u64,
    pub key_ready: u64,
    pub val_len_valid: u64,
    pub val_len: u64,
    pub val_tag: u64,
    pub val_flags: u64,
    pub val_cas: u64,
    pub val_valid: u64,
    pub val_data: u64,
    pub val_keep: u64,
    pub val_last: u64,
    pub cmd_ready: u64,
    pub rsp_valid: u64,
    pub rsp_rd: u64,
    pub write_mode: u64,
    pub lookup_idle: u64,
    pub mem_req_valid: u64,
    pub mem_req_addr: u64,
    pub mem_req_write: u64,
    pub mem_req_data: Line,
    pub mem_rsp_ready: u64,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub enum LookupPorts {}

// SAFETY: both structs are `repr(C)`, consist of `u64`, and repeat those of `shims/lookup.cpp`
// field by field.
unsafe impl Ports for LookupPorts {
    type In = In;
    type Out = Out;
}

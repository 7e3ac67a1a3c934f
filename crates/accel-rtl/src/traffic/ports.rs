//! The ports of `traffic.sv`. The structs are those of `shims/traffic.cpp`.
#![allow(missing_docs, reason = "the ports are described in traffic.sv")]

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
    pub cpu_rx_ready: u64,
    pub cpu_tx_valid: u64,
    pub cpu_tx_data: u64,
    pub cpu_tx_keep: u64,
    pub cpu_tx_last: u64,
    pub write_mode: u64,
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
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub rx_ready: u64,
    pub tx_valid: u64,
    pub tx_data: u64,
    pub tx_keep: u64,
    pub tx_last: u64,
    pub cpu_rx_valid: u64,
    pub cpu_rx_data: u64,
    pub cpu_rx_keep: u64,
    pub cpu_rx_last: u64,
    pub cpu_tx_ready: u64,
    pub key_len_valid: u64,
    pub key_len: u64,
    pub key_tag: u64,
    pub key_valid: u64,
    pub key_data: u64,
    pub key_keep: u64,
    pub key_last: u64,
    pub val_len_ready: u64,
    pub val_ready: u64,
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
pub enum TrafficPorts {}

// SAFETY: both structs are `repr(C)`, consist of `u64`, and repeat those of `shims/traffic.cpp`
// field by field.
unsafe impl Ports for TrafficPorts {
    type In = In;
    type Out = Out;
}

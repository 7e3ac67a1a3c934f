//! What `shim.c` has, as it is declared there.
#![allow(unsafe_code, reason = "these are functions of C")]

use std::ffi::{c_char, c_int, c_void};

/// A frame of DPDK's (`struct rte_mbuf`).
#[repr(C)]
pub struct RawFrame(c_void);

/// Memory for frames (`struct rte_mempool`).
#[repr(C)]
pub struct RawPool(c_void);

/// A frame that was received.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arrived {
    pub frame: *mut RawFrame,
    pub data: *mut u8,
    pub bytes: u32,
    pub flags: u32,
}

/// The hardware has found the checksum of the datagram right.
pub const IS_CHECKED: u32 = 1;
/// It lies in several pieces, or something else may read it.
pub const IS_UNUSABLE: u32 = 2;
/// It is of a virtual network, and its tag has been taken off.
pub const WAS_TAGGED: u32 = 4;
/// The checksum of the datagram may have been left to hardware that it has not passed.
pub const IS_PARTIAL: u32 = 8;

/// What a driver says of a port.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub mac: [u8; 6],
    pub mtu: u16,
    pub mtu_max: u16,
    pub queues_max: u16,
    pub numa_node: i32,
    pub computes_sums: u8,
    pub spreads: u8,
    pub driver: [u8; 32],
}

impl Description {
    /// The driver's name; empty if it is no text.
    pub fn driver(&self) -> &str {
        let name = std::ffi::CStr::from_bytes_until_nul(&self.driver);
        name.ok()
            .and_then(|name| name.to_str().ok())
            .unwrap_or_default()
    }
}

/// What a driver counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// Frames that found their queue full.
    pub missed: u64,
    /// Frames for which none was free to be filled.
    pub no_frame: u64,
}

unsafe extern "C" {
    pub fn glimmer_dpdk_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub fn glimmer_dpdk_is_port(port: u16) -> c_int;
    pub fn glimmer_dpdk_describe(port: u16, out: *mut Description) -> c_int;
    #[cfg(test)]
    pub fn glimmer_dpdk_data_bytes(frame_bytes_max: u32) -> u32;
    #[cfg(test)]
    pub fn glimmer_dpdk_sum_flags(ol_flags: u64) -> u32;
    pub fn glimmer_dpdk_frame_bytes(frame_bytes_max: u32) -> u32;
    pub fn glimmer_dpdk_caches_bytes() -> u32;
    pub fn glimmer_dpdk_pool(
        name: *const c_char,
        frames: u32,
        cached: u32,
        frame_bytes_max: u32,
        numa_node: c_int,
    ) -> *mut RawPool;
    pub fn glimmer_dpdk_pool_free(pool: *mut RawPool);
    pub fn glimmer_dpdk_pool_free_frames(pool: *const RawPool) -> u32;
    pub fn glimmer_dpdk_errno() -> c_int;
    pub fn glimmer_dpdk_start(
        port: u16,
        queues: u16,
        mtu: u16,
        is_asked: c_int,
        waiting: u16,
        pool: *mut RawPool,
    ) -> c_int;
    pub fn glimmer_dpdk_join(port: u16, groups: *mut [u8; 6], count: u32);
    pub fn glimmer_dpdk_is_up(port: u16) -> c_int;
    pub fn glimmer_dpdk_close(port: u16);
    pub fn glimmer_dpdk_counts(port: u16, out: *mut Lost) -> c_int;
    pub fn glimmer_dpdk_steer(port: u16, is_v6: c_int, udp_port: u16, queue: u16) -> *mut c_void;
    pub fn glimmer_dpdk_unsteer(port: u16, rule: *mut c_void);
    pub fn glimmer_dpdk_receive(port: u16, queue: u16, frames: *mut Arrived, most: u16) -> u16;
    pub fn glimmer_dpdk_send(
        port: u16,
        queue: u16,
        frames: *mut *mut RawFrame,
        count: u16,
        leaves_sums: c_int,
    ) -> u16;
    pub fn glimmer_dpdk_take(pool: *mut RawPool) -> *mut RawFrame;
    pub fn glimmer_dpdk_give_back(frames: *mut *mut RawFrame, count: u32);
    pub fn glimmer_dpdk_data(frame: *mut RawFrame) -> *mut u8;
    pub fn glimmer_dpdk_room(frame: *const RawFrame) -> u32;
    pub fn glimmer_dpdk_finish(frame: *mut RawFrame, bytes: u16, leaves_sums: c_int, is_v6: c_int);

    // DPDK's own.
    pub fn rte_thread_register() -> c_int;
    pub fn rte_thread_unregister();
}

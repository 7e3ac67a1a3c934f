//! The tests of nodes, in one program: what they share is compiled once, above all the engines over
//! real tables.
#![cfg(not(loom))]

#[path = "support/bench.rs"]
mod bench;
mod control_replies;
mod denied;
mod driven;
mod driven_packets;
mod floods;
mod full_watchers;
mod large_arguments;
mod lifecycle;
mod limits;
#[path = "support/lossy.rs"]
mod lossy;
#[path = "support/native.rs"]
mod native;
mod native_concurrency;
mod native_endpoint;
mod native_faults;
mod native_hostile;
mod native_large_reads;
mod native_silence;
mod native_sockets;
mod native_threads;
mod native_writers;
#[path = "support/network.rs"]
mod network;
mod order;
#[path = "support/requests.rs"]
mod requests;
mod room;
mod server_waits;
mod share;
mod shared_devices;
mod slices;
mod strangers;
mod support;
mod switching;
mod tenants;
mod throttled;
mod transactions;
mod visits;

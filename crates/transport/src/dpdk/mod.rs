//! Datagrams by a NIC that this process drives itself, with DPDK: bursts of frames from and to the
//! queues of a port, one of each for a core, as MICA (NSDI 2014, §4.2) has them.
//!
//! | file | idea |
//! | --- | --- |
//! | `shim.c`, `shim` | what of DPDK can be called from C only, and its declarations |
//! | `nic` | a port, its queues, and frames with one owner each |
//! | `eal` | DPDK's environment, begun once in a process |
//! | `setting` | what follows `dpdk:` on the command line |
//! | `control` | ARP, neighbour discovery and ping: the kernel does not see this port |
//! | `neighbours` | hardware addresses of hosts that were asked for them |
//! | `mailbox` | what arrived at another device's queue |
//! | `port` | a port with who we are there, and whose datagrams are whose |
//! | `device` | a worker's queue and a port of UDP, as a packet device |
//! | `transport` | from the command line to devices |
//!
//! # Who has what
//!
//! A port has as many queues as there are workers, if its driver has them. The devices of a worker
//! look at the worker's queue. A datagram reaches the right queue by a rule of the NIC for its port
//! of UDP, or by RSS where workers share the port. What arrives elsewhere is left in a mailbox and
//! counted.
//!
//! A request is parsed where the NIC has put it, and a reply that is sent back in its place leaves
//! in the same frame. Other replies are copied into a free frame, and leave to the hardware address
//! that the peer's last request came from.
//!
//! # C
//!
//! DPDK defines what is called for every burst in headers, and its structures change with its
//! version. `shim.c` has a function for each of these and no decisions. There are no generated
//! bindings. Only the core libraries are linked; EAL loads drivers.

mod control;
mod device;
mod eal;
mod mailbox;
mod neighbours;
mod nic;
mod port;
mod setting;
mod shim;
mod transport;

pub use transport::Dpdk;

//! A server with an accelerator, as its clients see it.
//!
//! | file | idea |
//! | --- | --- |
//! | `hammer` | clients under whom nobody may read an outdated value |
//! | `asked` | its reads over UDP |
//! | `changes`, `keys` | what changes items there, and the numbers in their values |
//! | `reader` | a client that reads one key after the other |
//! | `server` | the server, and a connection of the text protocol |
//! | `link`, `bpf` | two network namespaces, for packet programs, and which programs there are |
//! | `model` | the hammer on the accelerator's model |
//! | `circuit` | the hammer on a device in another process |
//! | `front` | that process: the circuit's software model before the server |
//! | `packets` | the hammer on packet programs |
//! | `refusals` | each reason for which a server with a packet program does not start |
//! | `remains` | what a server with a packet program leaves behind, and wakes |

mod asked;
mod bpf;
mod changes;
mod circuit;
mod front;
mod hammer;
mod keys;
mod link;
mod model;
mod packets;
mod reader;
mod refusals;
mod remains;
mod server;

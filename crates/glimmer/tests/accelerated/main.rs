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
//! | `packets` | the hammer on packet programs |
//! | `refusals` | each reason for which a server with a packet program does not start |
//! | `remains` | what a server with a packet program leaves behind, and wakes |

mod asked;
mod bpf;
mod changes;
mod hammer;
mod keys;
mod link;
mod model;
mod packets;
mod reader;
mod refusals;
mod remains;
mod server;

/// The program whose command `serve` is the server.
const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer");

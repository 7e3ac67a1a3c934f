//! Floor 7: the accelerator's circuit, simulated between a network and a server.
//! `docs/accelerator-rtl.md` describes the circuit, and `docs/accelerator-rtl-server.md` the server
//! behind it.
//!
//! | module | idea |
//! | --- | --- |
//! | [`assembly`] | the server behind a circuit |
//! | [`network`] | frames between two devices pass the circuit, and a server fills it |
//! | [`machine`] | the circuit with the CPU's memory and a driver of its rings |
//! | [`wire`] | frames as beats |
//! | [`tap`] | a network interface of the kernel |
//! | [`bed`] | two network namespaces with the circuit between them |
//! | [`clients`] | clients of the server behind the circuit |
//! | [`trial`] | all of these together, with a report |
//! | [`waves`] | pictures of the lookup's ports over time |

pub mod assembly;
pub mod bed;
pub mod clients;
pub mod machine;
pub mod network;
pub mod tap;
pub mod trial;
pub mod waves;
pub mod wire;

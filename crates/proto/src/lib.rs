//! Floor 1: protocols as sans-IO codecs. Bytes are parsed once into a borrowed, valid [`Request`];
//! replies are appended to a buffer that came with the request. This crate touches no socket, clock
//! or thread, and allocates nothing per request.

#[macro_use]
mod protocols;

mod administration;
mod announced;
pub mod binary;
pub mod control;
pub mod credentials;
pub mod decimal;
mod denial;
mod emit;
mod foreign;
mod form;
#[doc(hidden)]
pub mod fuzzing;
pub mod glob;
pub mod integer;
pub mod meta;
pub mod native;
pub mod outcome;
mod parser;
pub mod request;
pub mod resp;
pub mod rights;
pub mod sections;
mod speak;
mod sum;
pub mod text;
pub mod udp;
mod words;

pub use administration::AdminCommand;
pub use announced::Announced;
pub use control::{Control, Credentials};
pub use denial::Denial;
pub use form::Form;
pub use outcome::Outcome;
pub use parser::{Accepts, Parser};
pub use request::{Create, Refusal, Request, StoreMode, Verb};
pub use rights::{Rights, Rules};
pub use speak::{Rest, Speak};
pub use sum::Sum;
pub use text::{Admin, After, Limits, Shutdown, Step};
pub use words::Words;

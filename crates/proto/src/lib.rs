//! Floor 1: protocols as sans-IO codecs. Bytes are parsed once into a borrowed, valid [`Request`]; replies are appended to
//! a buffer that came with the request. Nothing here touches a socket, a clock or a thread, and nothing allocates per request.

pub mod binary;
pub mod credentials;
mod emit;
#[doc(hidden)]
pub mod fuzzing;
pub mod meta;
pub mod native;
pub mod outcome;
mod parser;
pub mod request;
pub mod text;
pub mod udp;

pub use outcome::Outcome;
pub use parser::{Accepts, Parser};
pub use request::{Create, Form, Refusal, Request, StoreMode, Verb};
pub use text::{Admin, After, Limits, Shutdown, Step};

//! The circuit's lookup.
//!
//! | file | idea |
//! | --- | --- |
//! | `conformance` | what every body of the accelerator is held to |
//! | `against_model` | random streams of lookups, with operations between |
//! | `directed` | one situation after the other |
//! | `cycles` | the cycle budget |
//! | `planted` | bugs that the others must find |

mod against_model;
mod conformance;
mod cycles;
mod directed;
mod planted;

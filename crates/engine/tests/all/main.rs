//! The tests of engines, in one program: the engines over each table and access mode are compiled
//! for it once.
#![cfg(not(loom))]

mod changes;
mod credit;
mod elsewhere;
mod lent_values;
mod long_replies;
mod oracle;
mod protocols;
mod rebuilt;
mod walks;

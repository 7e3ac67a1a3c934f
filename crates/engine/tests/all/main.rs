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

use glimmer_base::Seed;
use glimmer_engine::Job;
use glimmer_proto::Request;

/// A request whose reply goes into the buffer of this number.
fn job(seed: Seed, request: Request<'_>, out: u32) -> Job<'_> {
    Job {
        keyhash: request.with_key(|key| seed.keyhash(key)),
        request,
        out,
        size_max: Job::ANY_SIZE,
        copy_max: Job::ANY_SIZE,
        client: 0,
    }
}

//! Clients that ask for large values, read nothing, and come back when they are closed.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Result;

use super::{Case, Crowd, Scenario, Subject, TextClient, manners::PATIENCE};

/// Keys of the values. One is asked for; the others fill the server's memory.
const KEY: &str = "glimmer-abuse-unread";
/// Requests of a client on one connection: more than the server executes before it closes it.
const REQUESTS: usize = 20_000;

pub(super) struct NonReaders;

impl Scenario for NonReaders {
    fn name(&self) -> &'static str {
        "non-readers"
    }

    fn about(&self) -> &'static str {
        "each client asks for values of 1 MB, reads nothing, and connects again when it is closed"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |connections| Case {
            memory_mib: 64,
            connections,
            value_bytes: 1_000_000,
            ..Case::default()
        };
        match every {
            false => vec![case(1000)],
            true => [1000, 100, 4000].map(case).to_vec(),
        }
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let mut client = TextClient::connect(subject.address(), PATIENCE)?;
        let value = vec![b'x'; case.value_bytes];
        let fill = (case.memory_mib << 20) / case.value_bytes.max(1);
        for number in 0..fill {
            client.set(&format!("{KEY}-{number}"), &value)?;
        }
        client.set(KEY, &value)
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        // A `gat` changes the item, so its value is copied into the reply.
        let words = format!("gat 0 {KEY}\r\n").repeat(REQUESTS).into_bytes();
        let mut crowd = Crowd::new(subject.address(), case.connections, None);
        while !stop.load(Relaxed) {
            for number in 0..crowd.len() {
                if stop.load(Relaxed) {
                    break;
                }
                crowd.say(number, &words)?;
            }
        }
        Ok(crowd.notes())
    }
}

//! Clients that request more than socket buffers hold and read a byte per second.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::{Case, Crowd, Scenario, Subject, slow};

pub(super) struct SlowReaders;

impl Scenario for SlowReaders {
    fn name(&self) -> &'static str {
        "slow-readers"
    }

    fn about(&self) -> &'static str {
        "each client asks for 8 MiB of values and takes one byte a second"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        slow::cases(every, &[100_000, 1_000, 1_000_000])
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        slow::store(subject, case)
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let speech = slow::reader(case.value_bytes);
        let address = subject.address();
        let mut crowd = Crowd::new(address, case.connections, Some(slow::RECEIVE_BYTES));
        slow::drive(&mut crowd, |_| &speech, stop)
    }
}

//! Clients that send a part of a value at once and then a byte per second.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::{Case, Crowd, Scenario, Subject, slow};

pub(super) struct SlowSenders;

impl Scenario for SlowSenders {
    fn name(&self) -> &'static str {
        "slow-senders"
    }

    fn about(&self) -> &'static str {
        "each client sends a part of a value, then one byte a second"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        slow::cases(every, &[16_000, 3_000, 100_000, 1_000_000])
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let speech = slow::sender(case.value_bytes);
        let mut crowd = Crowd::new(subject.address(), case.connections, None);
        slow::drive(&mut crowd, |_| &speech, stop)
    }
}

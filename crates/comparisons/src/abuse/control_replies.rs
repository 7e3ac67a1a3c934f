//! Clients that keep requesting long listings and never read them.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Result, ensure};

use super::{Case, Crowd, Scenario, Subject, TextClient, manners::PATIENCE};

/// Items stored in advance, with keys of 16 bytes.
const ITEMS: usize = 60_000;
const VALUE_BYTES: usize = 100;
/// Clients that send requests. The other hostile connections make `stats conns` longer.
const ASKING: usize = 16;
/// Commands that each client sends at once.
const COMMANDS: usize = 256;
/// Pause between two rounds over all clients.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct ControlReplies;

/// Stores the items to be listed.
pub(super) fn fill(subject: &Subject) -> Result<()> {
    let mut client = TextClient::connect(subject.address(), PATIENCE)?;
    let value = "x".repeat(VALUE_BYTES);
    for begin in (0..ITEMS).step_by(1000) {
        let set = |item| format!("set listed-{item:09} 0 0 {VALUE_BYTES} noreply\r\n{value}\r\n");
        let sets: String = (begin..begin + 1000).map(set).collect();
        client.send(sets.as_bytes())?;
    }
    client.send(b"mn\r\n")?;
    let answer = client.line()?;
    ensure!(
        answer == "MN",
        "storing {ITEMS} items was answered {answer:?}"
    );
    Ok(())
}

impl Scenario for ControlReplies {
    fn name(&self) -> &'static str {
        "control-replies"
    }

    fn about(&self) -> &'static str {
        "16 clients ask 256 times for `stats cachedump` or `stats conns` and read nothing"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |connections| Case {
            connections,
            ..Case::default()
        };
        match every {
            false => vec![case(1000)],
            true => vec![case(1000), case(ASKING), case(10_000)],
        }
    }

    fn prepare(&self, subject: &Subject, _: &Case) -> Result<()> {
        fill(subject)
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let mut crowd = Crowd::new(subject.address(), case.connections, None);
        let speeches = ["stats cachedump 1 0\r\n", "stats conns\r\n"];
        let speeches = speeches.map(|command| command.repeat(COMMANDS).into_bytes());
        let asking = ASKING.min(crowd.len());
        for number in asking..crowd.len() {
            crowd.say(number, b"mn\r\n")?;
        }
        while !stop.load(Relaxed) {
            for number in 0..asking {
                crowd.say(number, &speeches[number % speeches.len()])?;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(crowd.notes())
    }
}

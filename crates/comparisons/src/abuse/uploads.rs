//! Large values that arrive slowly: honest clients behind slow links.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Case, Crowd, Scenario, Subject};

pub(super) struct Uploads;

/// How long a client takes for a value.
const PERIOD: Duration = Duration::from_secs(5);
/// Rounds in which each client sends something once, together.
const PARTS: usize = 10;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
/// The answer to a value that was stored.
const STORED: &[u8] = b"STORED\r\n";

impl Scenario for Uploads {
    fn name(&self) -> &'static str {
        "uploads"
    }

    fn about(&self) -> &'static str {
        "each client sends one large value after another, evenly over 5 seconds"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |connections, value_bytes| Case {
            memory_mib: 1024,
            connections,
            value_bytes,
            ..Case::default()
        };
        let cases = vec![case(1000, 100_000), case(100, 900_000)];
        match every {
            true => cases,
            false => cases[..1].to_vec(),
        }
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let mut crowd = Crowd::new(subject.address(), case.connections, None);
        let head = |number| format!("set glimmer-abuse-{number:06} 0 0 {}\r\n", case.value_bytes);
        let heads: Vec<String> = (0..crowd.len()).map(head).collect();
        let mut body = vec![b'x'; case.value_bytes];
        body.extend_from_slice(b"\r\n");
        let (head_bytes, value_bytes) = (head(0).len(), head(0).len() + body.len());
        let (begin, mut stored, mut refused) = (Instant::now(), 0, 0);
        for round in 0.. {
            if stop.load(Relaxed) {
                break;
            }
            for number in (round % PARTS..crowd.len()).step_by(PARTS) {
                // They begin one after the other, so that they do not end together.
                let late = PERIOD.mul_f64(number as f64 / crowd.len() as f64);
                let time = begin.elapsed().saturating_sub(late);
                let values = time.as_secs_f64() / PERIOD.as_secs_f64();
                let end = (values * value_bytes as f64) as usize;
                crowd.say_next(number, |sent| {
                    let at = sent % value_bytes;
                    let rest = match at.checked_sub(head_bytes) {
                        None => &heads[number].as_bytes()[at..],
                        Some(at) => &body[at..],
                    };
                    &rest[..rest.len().min(end.saturating_sub(sent))]
                })?;
                let answered = crowd.taken(number);
                if end / value_bytes > answered / STORED.len() {
                    let mut answer = [0; STORED.len()];
                    let bytes = crowd.take(number, &mut answer);
                    stored += usize::from(answer == STORED);
                    refused += usize::from(bytes > 0 && answer != STORED);
                }
            }
            std::thread::sleep(PAUSE);
        }
        let notes = crowd.notes();
        Ok(format!("{stored} stored, {refused} refused, {notes}"))
    }
}

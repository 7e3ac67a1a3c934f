//! Tiny datagrams that request large values. Some have no token, as if their source address were
//! forged; some have one and request later parts of the value.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::Result;
use glimmer_proto::native::{
    Kind as Datagram, Status,
    fragment::{DATA_BYTES, WINDOW},
    request::Action,
};

use super::native_writers::{Hostile, native_arguments, native_of};
use super::{Case, PATIENCE, Scenario, Subject, TextClient};
use crate::servers::Kind;

/// The requested item.
const KEY: &str = "glimmer-abuse-large";
const VALUE_BYTES: usize = 1_000_000;
/// Requests without a token per request with one.
const UNPROVEN: usize = 30;
/// Pause between two bursts of an address.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct NativeLargeReads;

impl Scenario for NativeLargeReads {
    fn name(&self) -> &'static str {
        "native-large-reads"
    }

    fn about(&self) -> &'static str {
        "native clients with and without a token ask for parts of a value of 1 MB"
    }

    fn cases(&self, _: bool) -> Vec<Case> {
        vec![Case {
            connections: 8,
            value_bytes: VALUE_BYTES,
            ..Case::default()
        }]
    }

    fn suits(&self, kind: Kind) -> bool {
        kind == Kind::Glimmer
    }

    fn glimmer_arguments(&self, _: &Case) -> Vec<String> {
        native_arguments()
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let mut client = TextClient::connect(subject.address(), PATIENCE)?;
        client.set(KEY, &vec![b'x'; case.value_bytes])
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let server = native_of(subject)?;
        let hostile = (0..case.connections)
            .map(|number| Hostile::open(server, number))
            .collect::<Result<Vec<_>>>()?;
        let windows = case.value_bytes.div_ceil(WINDOW * DATA_BYTES);
        let cpu_before = subject.cpu();
        let (mut asked, mut refused, mut fragments) = (0_u64, 0_u64, 0_u64);
        while !stop.load(Relaxed) {
            for hostile in &hostile {
                for number in 0..=UNPROVEN {
                    let window = asked as usize % windows;
                    let offset = (window * WINDOW * DATA_BYTES) as u32;
                    let token = match number {
                        0 => hostile.directory.token,
                        _ => 0,
                    };
                    let read = Action::Read { offset };
                    asked += u64::from(hostile.send(asked, token, KEY.as_bytes(), read)?);
                }
                hostile.receive(|kind, status| {
                    fragments += u64::from(kind == Datagram::FragmentReply);
                    refused += u64::from(status == Some(Status::NoToken));
                });
            }
            std::thread::sleep(PAUSE);
        }
        let cpu = subject.cpu().zip(cpu_before);
        let each = cpu.map(|(after, before)| (after - before).as_secs_f64() * 1e6 / asked as f64);
        let each = each.map_or(String::new(), |us| format!(", {us:.1} us of CPU each"));
        Ok(format!(
            "{asked} reads asked for{each}, {refused} without token refused, {fragments} fragments"
        ))
    }
}

use super::*;
use crate::packet::{Switch, SwitchPort};

const SEED: u64 = 0x51AB;
const DATAGRAMS: u32 = 4_000;

fn address(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

struct Rig {
    server: FaultInjector<SwitchPort>,
    client: SwitchPort,
    time: Microseconds,
    batch: RxBatch,
}

impl Rig {
    fn new(receiving: Faults, sending: Faults, seed: u64) -> Rig {
        let switch = Switch::new();
        let time = Microseconds::default();
        let server = switch.attach(address(1));
        Rig {
            server: FaultInjector::new(server, (receiving, sending), seed, time.clone()),
            client: switch.attach(address(2)),
            time,
            batch: RxBatch::default(),
        }
    }

    /// What the server has received by now.
    fn arrived(&mut self) -> Vec<Vec<u8>> {
        let mut arrived = Vec::new();
        while self.server.receive(&mut self.batch) > 0 {
            for index in 0..self.batch.count() {
                assert_eq!(self.batch.peer(index), address(2));
                let datagrams = self.batch.segments(index);
                arrived.extend(datagrams.map(<[u8]>::to_vec));
            }
        }
        arrived
    }

    /// Sends numbered datagrams, one in each microsecond, and waits for all of them.
    fn run(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        for number in 0..DATAGRAMS {
            let datagram = number.to_be_bytes().repeat(5);
            self.client.send(&[Message::alone(address(1), &datagram)]);
            self.time.set(number.into());
            all.extend(
                self.arrived()
                    .into_iter()
                    .map(|one| (u64::from(number), one)),
            );
        }
        while let Some(next_us) = self.server.next_us() {
            self.time.set(next_us);
            all.extend(self.arrived().into_iter().map(|one| (next_us, one)));
        }
        all
    }
}

fn number(datagram: &[u8]) -> u32 {
    u32::from_be_bytes(*datagram.first_chunk().unwrap())
}

/// Whether a share of all datagrams is about what was asked for.
fn is_near(count: usize, probability: f64) -> bool {
    let expected = f64::from(DATAGRAMS) * probability;
    (count as f64 - expected).abs() < expected * 0.2
}

#[test]
fn without_faults_everything_arrives_at_once_and_in_order() {
    let arrived = Rig::new(Faults::default(), Faults::default(), SEED).run();
    let expected = (0..DATAGRAMS).map(|number| (number.into(), number.to_be_bytes().repeat(5)));
    assert!(arrived.into_iter().eq(expected));
}

#[test]
fn a_seed_decides_everything() {
    let faults = Faults {
        loss: 0.1,
        duplication: 0.1,
        reordering: 0.1,
        reordering_us_max: 50,
        truncation: 0.1,
        delay_us_min: 5,
        delay_us_max: 20,
    };
    let run = |seed| Rig::new(faults, faults, seed).run();
    assert_eq!(run(SEED), run(SEED));
    assert_ne!(run(SEED), run(SEED + 1));
}

#[test]
fn datagrams_are_lost() {
    let faults = Faults {
        loss: 0.25,
        ..Faults::default()
    };
    let arrived = Rig::new(faults, Faults::default(), SEED).run();
    assert!(is_near(arrived.len(), 0.75), "{}", arrived.len());
}

#[test]
fn datagrams_are_repeated() {
    let faults = Faults {
        duplication: 0.25,
        ..Faults::default()
    };
    let mut arrived = Rig::new(faults, Faults::default(), SEED).run();
    assert!(is_near(arrived.len() - DATAGRAMS as usize, 0.25));
    arrived.dedup();
    assert_eq!(arrived.len(), DATAGRAMS as usize);
}

#[test]
fn datagrams_are_delayed_and_stay_in_order_if_all_are_alike() {
    let faults = Faults {
        delay_us_min: 30,
        delay_us_max: 30,
        ..Faults::default()
    };
    let arrived = Rig::new(faults, Faults::default(), SEED).run();
    assert_eq!(arrived.len(), DATAGRAMS as usize);
    for (index, (at_us, datagram)) in arrived.iter().enumerate() {
        assert_eq!(number(datagram), index as u32);
        assert_eq!(*at_us, index as u64 + 30);
    }
}

#[test]
fn datagrams_are_reordered_and_all_arrive() {
    let faults = Faults {
        reordering: 0.1,
        reordering_us_max: 40,
        ..Faults::default()
    };
    let arrived = Rig::new(faults, Faults::default(), SEED).run();
    let mut numbers: Vec<u32> = arrived.iter().map(|(_, one)| number(one)).collect();
    let late = arrived
        .iter()
        .filter(|(at_us, one)| *at_us > number(one).into());
    // One in 41 is held back by nothing.
    assert!(is_near(late.count(), 0.1));
    assert!(
        arrived
            .iter()
            .all(|(at_us, one)| at_us - u64::from(number(one)) <= 40)
    );
    assert!(!numbers.is_sorted());
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..DATAGRAMS));
}

#[test]
fn datagrams_are_truncated_to_a_beginning() {
    let faults = Faults {
        truncation: 0.25,
        ..Faults::default()
    };
    let arrived = Rig::new(faults, Faults::default(), SEED).run();
    // What is left of some is nothing at all, which the rig does not show.
    let short = arrived.iter().filter(|(_, one)| one.len() < 20);
    assert!(is_near(short.count(), 0.25 * 19.0 / 20.0));
    for (at_us, datagram) in &arrived {
        let whole = (*at_us as u32).to_be_bytes().repeat(5);
        assert!(whole.starts_with(datagram));
    }
}

#[test]
fn what_is_sent_meets_faults_of_its_own() {
    let faults = Faults {
        loss: 0.5,
        delay_us_min: 10,
        delay_us_max: 10,
        ..Faults::default()
    };
    let mut rig = Rig::new(Faults::default(), faults, SEED);
    let bytes = vec![7; 64 * 10];
    for _ in 0..10 {
        let sent = rig
            .server
            .send(&[Message::segments(address(2), &bytes, 10)]);
        assert_eq!(
            (sent.datagrams, sent.lost),
            (64, 0),
            "a network does not tell"
        );
    }
    let mut handle = rig.server.twin();
    handle.send(&[Message::alone(address(2), b"of another thread")]);
    let received = |rig: &mut Rig| {
        let mut count = 0;
        while rig.client.receive(&mut rig.batch) > 0 {
            count += rig.batch.count();
        }
        count
    };
    assert_eq!(received(&mut rig), 0);
    assert_eq!(rig.server.next_us(), Some(10));
    rig.time.set(10);
    assert_eq!(rig.arrived(), Vec::<Vec<u8>>::new());
    let count = received(&mut rig);
    assert!((256..384).contains(&count), "{count} of 641");
}

#[test]
#[should_panic(expected = "1.5")]
fn a_probability_is_at_most_one() {
    let faults = Faults {
        loss: 1.5,
        ..Faults::default()
    };
    Rig::new(faults, Faults::default(), SEED);
}

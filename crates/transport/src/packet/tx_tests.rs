use super::*;
use proptest::prelude::*;

/// Records every datagram, and accepts a limited number of calls.
struct Notes {
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    calls: usize,
    calls_max: usize,
}

impl PacketSender for Notes {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        assert!((1..=PACKET_BATCH_MAX).contains(&messages.len()));
        self.calls += 1;
        let mut transmitted = Transmitted::default();
        for message in messages {
            if message.is_segmented() {
                assert!(message.header.is_none() && message.bytes() <= SEGMENTED_BYTES_MAX);
                assert!(message.datagrams() <= SEGMENTS_MAX);
            }
            if self.calls > self.calls_max {
                transmitted.is_full = true;
                transmitted.lost += message.datagrams() as u64;
                continue;
            }
            transmitted.count(message);
            let apart = message.apart();
            let bytes = |one: Message<'_>| (one.to, [one.header(), one.payload].concat());
            self.datagrams.extend(apart.map(bytes));
        }
        transmitted
    }
}

fn to(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

/// A peer's port, whether a single datagram has a header, the number of bytes, and the length of
/// each datagram.
fn message() -> impl Strategy<Value = (u16, bool, usize, usize)> {
    let lengths = prop_oneof![
        (0..200usize, 1..50usize),
        (0..200_000usize, 900..1500usize),
        (60_000..70_000usize, 60_000..70_000usize),
    ];
    (0..3u16, any::<bool>(), lengths)
        .prop_map(|(port, alone, (bytes, size))| (port, alone, bytes, size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// All pushed messages leave as the same datagrams in the same order, or are counted as lost.
    #[test]
    fn datagrams_leave_as_they_were_pushed(
        messages in proptest::collection::vec(message(), 0..80),
        calls_max in prop_oneof![Just(usize::MAX), 0..3usize],
    ) {
        let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        let mut notes = Notes {
            datagrams: Vec::new(),
            calls: 0,
            calls_max,
        };
        let mut expected = Vec::new();
        let mut batch = TxBatch::new(&mut notes);
        for &(port, alone, length, size) in &messages {
            let payload = &bytes[..length];
            if alone {
                batch.push(Message::framed(to(port), *b"8 bytes:", payload));
                expected.push((to(port), [b"8 bytes:", payload].concat()));
            } else {
                batch.push(Message::segments(to(port), payload, size));
                let empty = payload.is_empty().then_some(payload);
                let datagrams = payload.chunks(size).chain(empty);
                expected.extend(datagrams.map(|bytes| (to(port), bytes.to_vec())));
            }
        }
        let transmitted = batch.finish();
        prop_assert_eq!(notes.datagrams.len() as u64, transmitted.datagrams);
        prop_assert_eq!(transmitted.datagrams + transmitted.lost, expected.len() as u64);
        prop_assert!(notes.calls <= calls_max.saturating_add(1), "a full sender is asked once");
        expected.truncate(notes.datagrams.len());
        prop_assert_eq!(&notes.datagrams, &expected);
        let sent: usize = expected.iter().map(|(_, bytes)| bytes.len()).sum();
        prop_assert_eq!(transmitted.bytes, sent as u64);
    }
}

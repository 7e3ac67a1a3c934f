use super::*;
use proptest::prelude::*;

const SLOT_BYTES: usize = 64;

/// What a test does to a batch.
#[derive(Clone, Debug)]
enum Step {
    Push(u16, Vec<u8>, usize),
    Extend(Vec<u8>),
    Truncate(usize, usize),
    Overwrite(usize, u8),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..=SLOT_BYTES);
    let few = proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        8 => (any::<u16>(), bytes(), 1..20usize)
            .prop_map(|(port, bytes, size)| Step::Push(port, bytes, size)),
        8 => few.prop_map(Step::Extend),
        3 => (any::<usize>(), 0..SLOT_BYTES).prop_map(|(at, bytes)| Step::Truncate(at, bytes)),
        3 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Step::Overwrite(at, byte)),
        1 => Just(Step::Clear),
    ]
}

fn peer(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

proptest! {
    /// A batch is a list of (peer, bytes, segment length), whatever is done to it.
    #[test]
    fn a_batch_is_a_list(steps in proptest::collection::vec(step(), 0..200)) {
        let mut batch = RxBatch::with_slots(SLOT_BYTES);
        let mut list: Vec<(SocketAddr, Vec<u8>, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Push(port, bytes, size) => {
                    prop_assert_eq!(batch.is_full(), list.len() == PACKET_BATCH_MAX);
                    if !batch.is_full() {
                        batch.push(peer(port), &bytes, size);
                        list.push((peer(port), bytes, size));
                    }
                }
                Step::Extend(datagram) => {
                    let fits = |(_, bytes, size): &&mut (_, Vec<u8>, usize)| {
                        !bytes.is_empty()
                            && bytes.len() % *size == 0
                            && (1..=*size).contains(&datagram.len())
                            && bytes.len() + datagram.len() <= SLOT_BYTES
                    };
                    let last = list.last_mut().filter(fits);
                    prop_assert_eq!(batch.extend_last(&datagram), last.is_some());
                    if let Some((_, bytes, _)) = last {
                        bytes.extend(&datagram);
                    }
                }
                Step::Truncate(at, bytes) if !list.is_empty() => {
                    let at = at % list.len();
                    batch.truncate(at, bytes);
                    list[at].1.truncate(bytes);
                }
                Step::Overwrite(at, byte) if !list.is_empty() => {
                    let at = at % list.len();
                    batch.bytes_mut(at).fill(byte);
                    list[at].1.fill(byte);
                }
                Step::Truncate(..) | Step::Overwrite(..) => {}
                Step::Clear => {
                    batch.clear();
                    list.clear();
                }
            }
            prop_assert_eq!(batch.count(), list.len());
            for (at, (peer, bytes, size)) in list.iter().enumerate() {
                prop_assert_eq!(batch.peer(at), *peer);
                prop_assert_eq!(batch.bytes(at), bytes);
                prop_assert_eq!(batch.segment_bytes(at), *size);
                prop_assert_eq!(batch.datagrams(at), bytes.chunks(*size).count().max(1));
            }
        }
    }
}

#[test]
#[should_panic]
fn what_is_longer_than_a_slot_is_not_pushed() {
    RxBatch::with_slots(SLOT_BYTES).push(peer(1), &[0; SLOT_BYTES + 1], 1);
}

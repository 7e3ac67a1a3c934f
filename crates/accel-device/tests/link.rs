//! A device at the other end of a socket does what a device in this process does, and nothing that
//! either side may send makes the other one do anything else than end the link.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use glimmer_accel_device::device::{Device, DeviceCounters, DeviceError, Mode};
use glimmer_accel_device::link::{
    Answer, ConnectError, Host, Link, Operation, Registers, Request, fuzz,
};
use glimmer_accel_device::models::Circuit;
use proptest::prelude::*;

const SLOTS: usize = 64;

/// Why links have ended.
type Said = Arc<Mutex<Vec<String>>>;

/// A link to a circuit that a thread carries operations out on.
fn linked() -> (Link, Arc<Mutex<Circuit>>, Said) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let circuit = Arc::new(Mutex::new(Circuit::new(SLOTS, 4096)));
    let device = circuit.clone();
    std::thread::spawn(move || {
        let capabilities = device.lock().unwrap().capabilities();
        let mut host = Host::new(theirs, capabilities).unwrap();
        let counters = DeviceCounters {
            cycles: 1,
            hits: 2,
            misses: 3,
            bypassed: 4,
            defer_high_water: 5,
        };
        loop {
            host.wait(Duration::from_secs(1)).unwrap();
            let device = &mut *device.lock().unwrap();
            if !host.serve_device(device, || counters).unwrap() {
                break;
            }
        }
    });
    let said = Arc::new(Mutex::new(Vec::new()));
    let says = said.clone();
    let on_loss = move |reason: &str| says.lock().unwrap().push(reason.to_owned());
    (Link::over(ours, on_loss).unwrap(), circuit, said)
}

#[test]
fn operations_are_carried_out_at_the_other_end() {
    let (mut link, circuit, _) = linked();
    assert_eq!(link.capabilities().slots, SLOTS);
    assert!(!link.capabilities().has_readable_counts);
    assert_eq!(link.delete(b"key"), Err(DeviceError::ReadMode));
    link.switch_mode(Mode::Write);
    assert_eq!(link.delete(b"key"), Ok(None));
    let slot = link.reserve(b"key", 9).unwrap().unwrap();
    link.associate_address(slot, 100).unwrap();
    link.associate_length_and_flags(slot, 5, 77).unwrap();
    link.associate_cas(slot, u64::MAX - 1).unwrap();
    link.write_value(slot, b"value").unwrap();
    link.associate_address(slot, 4095).unwrap();
    assert_eq!(link.write_value(slot, b"value"), Err(DeviceError::Value));
    link.associate_address(slot, 100).unwrap();
    link.reset_counts().unwrap();
    link.switch_mode(Mode::Read);
    let item = circuit.lock().unwrap().look_up_item(b"key").unwrap();
    assert_eq!((&*item.value, item.flags), (&b"value"[..], 77));
    assert_eq!(item.cas, u64::MAX - 1);
    assert_eq!(link.counters().unwrap().defer_high_water, 5);
    link.switch_mode(Mode::Write);
    assert_eq!(link.delete(b"key"), Ok(Some(slot)));
    assert!(!link.is_lost());
}

#[test]
fn a_device_that_goes_is_lost_for_good() {
    let (mut link, _circuit, said) = linked();
    link.give_up("enough");
    assert!(link.is_lost());
    assert_eq!(link.delete(b"key"), Err(DeviceError::Lost));
    link.switch_mode(Mode::Read);
    assert_eq!(*said.lock().unwrap(), ["enough"]);
}

#[test]
fn the_device_sees_at_once_that_the_server_has_gone() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut host = Host::new(theirs, Circuit::of_the_paper().capabilities()).unwrap();
    let server = std::thread::spawn(move || Link::over(ours, |_| ()).unwrap());
    while !server.is_finished() {
        host.serve(|_| unreachable!()).unwrap();
    }
    let link = server.join().unwrap();
    assert!(host.is_there());
    drop(link);
    assert!(!host.is_there());
}

#[test]
fn another_protocol_or_version_is_refused() {
    let answers: [(&[u8], &str); 4] = [
        (b"\x07\0\0\0\x01GLAC\x02\0", "version 2"),
        (b"\x07\0\0\0\x01GLAD\x01\0", "another protocol"),
        (b"VALUE", "no device"),
        (b"\x09\0\0\0\x02\0\0\0\0\0\0\0\0", "out of turn"),
    ];
    for (answer, part) in answers {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut theirs, answer).unwrap();
        let error: ConnectError = Link::over(ours, |_| ()).unwrap_err();
        let line = error.to_string();
        assert!(line.contains(part), "{line}");
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    let framed = |body: Vec<u8>| [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let registers =
        (0u8..10, 0u64..4, 0u64..400, bytes(300)).prop_map(move |(funct7, rs1, rs2, memory)| {
            let registers = [rs1.to_le_bytes(), rs2.to_le_bytes()].concat();
            framed([&[2, funct7], &*registers, &memory].concat())
        });
    prop_oneof![
        bytes(64),
        (1u8..4, bytes(64)).prop_map(move |(kind, rest)| framed([&[kind], &*rest].concat())),
        registers,
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_a_message(data in message()) {
        fuzz(&data);
    }

    #[test]
    fn operations_read_back(
        funct7 in 0u8..9,
        rs1 in 0u64..3,
        rs2 in prop_oneof![Just(0u64), 0u64..400, any::<u64>()],
        memory in prop::collection::vec(any::<u8>(), 0..300),
        fits in any::<bool>(),
    ) {
        let rs2 = if fits { rs2 & !0xFF | memory.len() as u64 & 0xFF } else { rs2 };
        let registers = Registers { funct7, rs1, rs2, memory: &memory };
        if let Ok(operation) = Operation::read(&registers) {
            prop_assert_eq!(operation.registers(), registers);
        }
    }

    #[test]
    fn a_host_that_is_sent_anything_ends_the_link(data in message()) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut host = Host::new(theirs, Circuit::new(4, 64).capabilities()).unwrap();
        std::io::Write::write_all(&mut ours, &data).unwrap();
        drop(ours);
        let mut circuit = Circuit::new(4, 64);
        while let Ok(true) = host.serve_device(&mut circuit, DeviceCounters::default) {}
        prop_assert!(!host.is_there());
    }
}

#[test]
fn requests_are_the_bytes_of_the_document() {
    let mut bytes = Vec::new();
    Request::Operate(Operation::Reserve {
        key: b"k",
        weight: 8,
    })
    .append_to(&mut bytes);
    let expected = b"\x13\0\0\0\x02\x02\0\0\0\0\0\0\0\0\x01\x08\0\0\0\0\0\0k";
    assert_eq!(bytes, expected);
    bytes.clear();
    Answer::Done { rd: 0xFFFF_FFFF }.append_to(&mut bytes);
    assert_eq!(bytes, b"\x09\0\0\0\x02\xff\xff\xff\xff\0\0\0\0");
}

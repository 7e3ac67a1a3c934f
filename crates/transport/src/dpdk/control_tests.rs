use super::*;
use crate::bypass::wire::{Ends, fill};
use proptest::prelude::*;

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THEIRS: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn rules(mac: [u8; 6], own: [&str; 2]) -> Rules {
    Rules {
        mac,
        interface: 0,
        addresses: own.map(ip).into(),
        own: own.map(ip).into(),
        port: 0,
        links: Vec::new(),
        all_hosts: vec!["10.1.0.255".parse().unwrap()],
        accepts_partial: false,
    }
}

fn ours() -> Rules {
    rules(OURS, ["10.1.0.1", "fd00::1"])
}

fn theirs() -> Rules {
    rules(THEIRS, ["10.1.0.2", "fd00::2"])
}

/// A ping from the other end, over IPv4 or IPv6.
fn ping(is_v4: bool, data: &[u8]) -> Vec<u8> {
    let rules = theirs();
    let (to, sums) = (EthernetAddress(OURS), ChecksumCapabilities::default());
    if !is_v4 {
        let request = Icmpv6Repr::EchoRequest {
            ident: 1,
            seq_no: 2,
            data,
        };
        let ends = ("fd00::2".parse().unwrap(), "fd00::1".parse().unwrap(), HOPS);
        return icmp_v6_frame(&request, ends, to, &rules);
    }
    let request = Icmpv4Repr::EchoRequest {
        ident: 1,
        seq_no: 2,
        data,
    };
    let header = Ipv4Repr {
        src_addr: "10.1.0.2".parse().unwrap(),
        dst_addr: "10.1.0.1".parse().unwrap(),
        next_header: IpProtocol::Icmp,
        payload_len: request.buffer_len(),
        hop_limit: HOPS,
    };
    let bytes = IPV4_BYTES + request.buffer_len();
    let mut frame = framed(EthernetProtocol::Ipv4, to, bytes, &rules);
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    header.emit(&mut packet, &sums);
    request.emit(
        &mut Icmpv4Packet::new_unchecked(packet.payload_mut()),
        &sums,
    );
    frame
}

/// Whoever asks learns our hardware address from the answer, and we learn theirs.
#[test]
fn who_asks_for_us_is_told() {
    for (of_us, of_them) in [("10.1.0.1", "10.1.0.2"), ("fd00::1", "fd00::2")] {
        let question = question(ip(of_them), ip(of_us), &theirs());
        let duty = duty(&question, &ours()).unwrap();
        assert_eq!(duty.says, Some((ip(of_them), THEIRS)));
        let (_, answer) = duty.answer.unwrap();
        let told = super::duty(&answer, &theirs()).unwrap();
        assert_eq!(
            told,
            Duty {
                answer: None,
                says: Some((ip(of_us), OURS)),
            }
        );
        let told = super::duty(&announcement(ip(of_us), &ours()), &theirs()).unwrap();
        assert_eq!(told.says, Some((ip(of_us), OURS)));
    }
}

#[test]
fn who_asks_for_others_is_not_told() {
    for (of_other, of_them) in [("10.1.0.9", "10.1.0.2"), ("fd00::9", "fd00::2")] {
        let question = question(ip(of_them), ip(of_other), &theirs());
        let answer = duty(&question, &ours()).and_then(|duty| duty.answer);
        assert_eq!(answer, None);
    }
    // They say that they are we.
    for of_us in ["10.1.0.1", "fd00::1"] {
        assert_eq!(
            duty(&question(ip(of_us), ip(of_us), &theirs()), &ours()),
            None
        );
        assert_eq!(duty(&announcement(ip(of_us), &theirs()), &ours()), None);
    }
}

/// A host that has no address yet looks for one that nobody has.
#[test]
fn who_has_no_address_yet_is_told_that_it_is_ours() {
    let probe = question(ip("0.0.0.0"), ip("10.1.0.1"), &theirs());
    let duty_v4 = duty(&probe, &ours()).unwrap();
    assert_eq!((duty_v4.answer.is_some(), duty_v4.says), (true, None));
    let request = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
        target_addr: "fd00::1".parse().unwrap(),
        lladdr: None,
    });
    let group = group_of("fd00::1".parse().unwrap());
    let ends = (Ipv6Addr::UNSPECIFIED, group, HOPS_ON_LINK);
    let probe = icmp_v6_frame(&request, ends, group_mac(group), &theirs());
    let (_, answer) = duty(&probe, &ours()).unwrap().answer.unwrap();
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    let told = duty(&answer, &theirs()).unwrap();
    assert_eq!(told.says, Some((ip("fd00::1"), OURS)));
}

#[test]
fn a_ping_comes_back_as_it_was() {
    for is_v4 in [true, false] {
        let request = ping(is_v4, b"data of a ping");
        let (asked, reply) = duty(&request, &ours()).unwrap().answer.unwrap();
        assert_eq!((asked, reply.len()), (Asked::Ping, request.len()));
        assert_eq!((&reply[..6], &reply[6..12]), (&THEIRS[..], &OURS[..]));
        let packet = &reply[ETHERNET_BYTES..];
        let sums = ChecksumCapabilities::default();
        if is_v4 {
            let packet = Ipv4Packet::new_checked(packet).unwrap();
            assert!(packet.verify_checksum());
            let icmp = Icmpv4Packet::new_checked(packet.payload()).unwrap();
            let expected = Icmpv4Repr::EchoReply {
                ident: 1,
                seq_no: 2,
                data: b"data of a ping",
            };
            assert_eq!(Icmpv4Repr::parse(&icmp, &sums).unwrap(), expected);
        } else {
            let packet = Ipv6Packet::new_checked(packet).unwrap();
            let (from, to) = (packet.src_addr(), packet.dst_addr());
            let icmp = Icmpv6Packet::new_checked(packet.payload()).unwrap();
            let expected = Icmpv6Repr::EchoReply {
                ident: 1,
                seq_no: 2,
                data: b"data of a ping",
            };
            assert_eq!(
                Icmpv6Repr::parse(&from, &to, &icmp, &sums).unwrap(),
                expected
            );
        }
    }
}

/// A ping whose header was changed, with the checksum of IPv4 right again.
fn changed(is_v4: bool, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = ping(is_v4, &[7; 30]);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    if is_v4 {
        Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]).fill_checksum();
    }
    frame
}

#[test]
fn what_lies_is_not_answered() {
    let right = [changed(true, 0, &OURS), changed(false, 0, &OURS)];
    assert!(right.iter().all(|frame| duty(frame, &ours()).is_some()));
    for (what, frame) in [
        ("to everybody", changed(true, 0, &[0xFF; 6])),
        ("to another host", changed(true, 0, &[2, 0, 0, 0, 0, 9])),
        ("from a group", changed(true, 6, &[1])),
        ("options", changed(true, 14, &[0x46])),
        ("a first fragment", changed(true, 20, &[0x20])),
        ("a later fragment", changed(true, 20, &[0, 9])),
        ("longer than the frame", changed(true, 16, &[1, 0])),
        ("shorter than its header", changed(true, 16, &[0, 19])),
        ("from nobody", changed(true, 26, &[0; 4])),
        ("from us", changed(true, 26, &[10, 1, 0, 1])),
        ("from all hosts", changed(true, 26, &[10, 1, 0, 255])),
        ("from a group of hosts", changed(true, 26, &[224, 0, 0, 1])),
        ("to all hosts", changed(true, 30, &[10, 1, 0, 255])),
        ("another checksum", changed(true, 60, &[9])),
        ("from us over IPv6", {
            let us: Ipv6Addr = "fd00::1".parse().unwrap();
            changed(false, 22, &us.octets())
        }),
        ("another checksum over IPv6", changed(false, 70, &[9])),
        ("longer than the frame over IPv6", changed(false, 18, &[1])),
    ] {
        assert_eq!(duty(&frame, &ours()), None, "{what}");
    }
    // What came over a router is no neighbour's.
    let mut far = question(ip("fd00::2"), ip("fd00::1"), &theirs());
    far[21] = 254;
    assert_eq!(duty(&far, &ours()), None);
    let mut datagram = vec![0; 100];
    let ends = Ends {
        our_mac: THEIRS,
        their_mac: OURS,
        ours: "10.1.0.2:5".parse().unwrap(),
        theirs: "10.1.0.1:6".parse().unwrap(),
    };
    fill(&mut datagram, &ends, b"", b"a datagram").unwrap();
    assert_eq!(duty(&datagram, &ours()), None);
}

proptest! {
    /// Whatever arrives, an answer goes to one host, or to all that look for an address, and it is
    /// hardly longer than the question.
    #[test]
    fn nothing_else_is_ever_sent(
        which in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut frame = match which {
            0 => question(ip("10.1.0.2"), ip("10.1.0.1"), &theirs()),
            1 => question(ip("fd00::2"), ip("fd00::1"), &theirs()),
            2 => ping(true, &[5; 40]),
            _ => ping(false, &[5; 40]),
        };
        for (place, byte) in changes {
            let at = place.index(frame.len());
            frame[at] = byte;
        }
        if is_cut {
            frame.truncate(cut.index(frame.len()));
        }
        if let Some((_, answer)) = duty(&frame, &ours()).and_then(|duty| duty.answer) {
            prop_assert_eq!(&answer[6..12], &OURS[..]);
            prop_assert!(answer[0] & 1 == 0 || answer[..6] == [0x33, 0x33, 0, 0, 0, 1]);
            prop_assert!(answer.len() <= frame.len().max(86));
        }
    }
}

#[test]
fn a_host_belongs_to_the_groups_of_its_addresses() {
    let all = ["10.0.0.1", "fd00::1", "fd01::1", "fd00::12:3456"].map(|ip| ip.parse().unwrap());
    let expected = [
        [0x33, 0x33, 0, 0, 0, 1],
        [0x33, 0x33, 0xFF, 0, 0, 1],
        [0x33, 0x33, 0xFF, 0x12, 0x34, 0x56],
    ];
    assert_eq!(groups(&all), expected);
    assert!(groups(&all[..1]).is_empty());
}

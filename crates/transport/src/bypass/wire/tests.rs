use super::checksum::{folded, holds, of, sum};
use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THEIR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn rules() -> Rules {
    Rules {
        mac: OUR_MAC,
        interface: 7,
        addresses: vec!["10.1.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        own: ["10.1.0.1", "10.1.0.9", "fd00::1", "fd00::9"]
            .map(|ip| ip.parse().unwrap())
            .into(),
        port: 4000,
        all_hosts: vec![Ipv4Addr::new(10, 1, 0, 255)],
        links: vec![
            ("10.1.0.1".parse().unwrap(), 24),
            ("fd00::1".parse().unwrap(), 64),
        ],
        accepts_partial: false,
    }
}

/// The ends of a datagram from a peer to us, as the peer sees them.
fn theirs(is_v4: bool) -> Ends {
    let (ours, theirs) = match is_v4 {
        true => ("10.1.0.1:4000", "10.1.0.2:5000"),
        false => ("[fd00::1]:4000", "[fd00::2]:5000"),
    };
    Ends {
        our_mac: THEIR_MAC,
        their_mac: OUR_MAC,
        ours: theirs.parse().unwrap(),
        theirs: ours.parse().unwrap(),
    }
}

fn frame(ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xAA; 4096];
    let bytes = fill(&mut frame, ends, &[], payload).unwrap();
    frame.truncate(bytes);
    frame
}

fn refused(frame: &[u8]) -> Reason {
    parse(frame, &rules()).unwrap_err()
}

/// The checksum as RFC 1071 defines it, word for word.
fn plain_sum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}

proptest! {
    #[test]
    fn sums_are_those_of_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(folded(sum(&bytes)), plain_sum(&bytes).to_be_bytes());
    }

    #[test]
    fn what_is_built_is_parsed(
        payload in prop::collection::vec(any::<u8>(), 0..3000),
        header in prop::option::of(any::<[u8; 8]>()),
        is_v4: bool,
    ) {
        let ends = theirs(is_v4);
        let header = header.iter().flatten().copied().collect::<Vec<_>>();
        let mut frame = vec![0; 4096];
        let bytes = fill(&mut frame, &ends, &header, &payload).unwrap();
        let (seen, at) = parse(&frame[..bytes], &rules()).unwrap();
        prop_assert_eq!(&frame[at], &[header, payload].concat()[..]);
        prop_assert_eq!((seen.ours, seen.theirs), (ends.theirs, ends.ours));
        prop_assert_eq!((seen.our_mac, seen.their_mac), (OUR_MAC, THEIR_MAC));
    }

    /// Every change of one bit is noticed, but for those in fields that say nothing to us: the
    /// sender's hardware address, and of IPv6 the traffic class, the flow and the hops.
    #[test]
    fn a_changed_bit_is_noticed(
        payload in prop::collection::vec(any::<u8>(), 19..100),
        place in any::<prop::sample::Index>(),
        bit in 0..8u32,
        is_v4: bool,
    ) {
        let mut frame = frame(&theirs(is_v4), &payload);
        let at = place.index(frame.len());
        frame[at] ^= 1 << bit;
        // Without a checksum nothing is noticed.
        prop_assume!(!is_v4 || frame[40..42] != [0, 0]);
        let says_nothing = (6..12).contains(&at)
            || (!is_v4 && (at == 14 && bit < 4 || (15..18).contains(&at) || at == 21));
        prop_assert_eq!(parse(&frame, &rules()).is_ok(), says_nothing && !(at == 6 && bit == 0));
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0..3,
    ) {
        let mut bytes = bytes;
        if bytes.len() > 24 {
            bytes[..6].copy_from_slice(&OUR_MAC);
            let ethertype = [ETHERTYPE_IPV4, ETHERTYPE_IPV6, 0x0806][kind as usize];
            bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
            bytes[14] = if kind == 0 { 0x45 } else { 0x60 };
        }
        prop_assert!(parse(&bytes, &rules()).is_err());
    }

    /// The fuzz target, on frames with a few bytes that are not as they should be.
    #[test]
    fn a_frame_is_refused_or_becomes_its_reply(
        is_v4: bool,
        payload in prop::collection::vec(any::<u8>(), 0..60),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let ours = if is_v4 { "10.7.0.2:11211" } else { "[fd00::2]:11211" };
        let ends = Ends {
            their_mac: [2, 0, 0, 0, 0, 2],
            theirs: ours.parse().unwrap(),
            ..theirs(is_v4)
        };
        let mut frame = frame(&ends, &payload);
        for (place, byte) in changes {
            let at = place.index(frame.len());
            frame[at] = byte;
        }
        fuzzing::frame(&frame);
    }

    #[test]
    fn a_frame_may_go_on_but_not_be_cut_off(
        payload in prop::collection::vec(any::<u8>(), 30..100),
        cut in any::<prop::sample::Index>(),
        more in prop::collection::vec(any::<u8>(), 1..20),
        is_v4: bool,
    ) {
        let whole = frame(&theirs(is_v4), &payload);
        prop_assert!(parse(&whole[..cut.index(whole.len())], &rules()).is_err());
        let longer = [whole, more].concat();
        let (_, at) = parse(&longer, &rules()).unwrap();
        prop_assert_eq!(&longer[at], &payload[..]);
    }
}

#[test]
fn the_corpus_of_the_fuzz_target() {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/datagram_frame"
    );
    for file in std::fs::read_dir(corpus).unwrap() {
        fuzzing::frame(&std::fs::read(file.unwrap().path()).unwrap());
    }
}

#[test]
fn a_short_frame_may_be_padded() {
    let mut padded = frame(&theirs(true), b"request");
    // The shortest frame on a wire, without its checksum.
    padded.resize(60, 0x55);
    let (_, at) = parse(&padded, &rules()).unwrap();
    assert_eq!(&padded[at], b"request");
}

#[test]
fn what_does_not_fit_is_not_built() {
    let mut short = [0; 50];
    assert_eq!(fill(&mut short, &theirs(true), b"12345678", b"x"), None);
    assert_eq!(fill(&mut short, &theirs(true), b"1234567", b"x"), Some(50));
    assert_eq!(fill(&mut short, &theirs(false), b"", b""), None);
}

/// Replaces bytes of a frame, and makes the checksum of the IPv4 header right again.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(&theirs(true), &[7; 30]);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame[24..26].fill(0);
    let sum = of(sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&sum);
    frame
}

#[test]
fn each_lie_has_its_reason() {
    for (what, frame, reason) in [
        (
            "a group's hardware address",
            changed(0, &[0xFF; 6]),
            Reason::NotOurs,
        ),
        ("a tag", changed(12, &[0x81, 0x00]), Reason::NotOurs),
        ("ARP", changed(12, &[0x08, 0x06]), Reason::NotOurs),
        ("IP options", changed(14, &[0x46]), Reason::NotOurs),
        ("a first fragment", changed(20, &[0x20, 0]), Reason::NotOurs),
        ("a later fragment", changed(20, &[0, 9]), Reason::NotOurs),
        ("TCP", changed(23, &[6]), Reason::NotOurs),
        (
            "shorter than its header",
            changed(16, &[0, 19]),
            Reason::Length,
        ),
        (
            "longer than the frame",
            changed(16, &[1, 0]),
            Reason::Length,
        ),
        (
            "a datagram of seven bytes",
            changed(16, &[0, 27]),
            Reason::Length,
        ),
        (
            "a datagram that says more than the packet",
            changed(38, &[0, 39]),
            Reason::Length,
        ),
        (
            "a datagram that says less than its header",
            changed(38, &[0, 7]),
            Reason::Length,
        ),
        (
            "a datagram that says less",
            changed(38, &[0, 30]),
            Reason::Checksum,
        ),
        ("another checksum", changed(40, &[1, 2]), Reason::Checksum),
        ("another payload", changed(50, &[8]), Reason::Checksum),
    ] {
        assert_eq!(refused(&frame), reason, "{what}");
    }
    let mut frame = frame(&theirs(true), b"request of a host");
    frame[25] ^= 1;
    assert_eq!(refused(&frame), Reason::Checksum, "of the IP header");
}

#[test]
fn only_our_addresses_and_hosts_that_can_be_answered_are_served() {
    let ends = |ours: &str, theirs: &str| Ends {
        our_mac: THEIR_MAC,
        their_mac: OUR_MAC,
        ours: theirs.parse().unwrap(),
        theirs: ours.parse().unwrap(),
    };
    for (ours, theirs, reason) in [
        ("10.1.0.9:4000", "10.1.0.2:5000", Reason::Address),
        ("10.1.0.1:4001", "10.1.0.2:5000", Reason::Address),
        ("10.1.0.255:4000", "10.1.0.2:5000", Reason::Address),
        ("[fd00::9]:4000", "[fd00::2]:5000", Reason::Address),
        ("10.1.0.1:4000", "10.1.0.1:5000", Reason::Source),
        ("10.1.0.1:4000", "10.1.0.9:5000", Reason::Source),
        ("[fd00::1]:4000", "[fd00::9]:5000", Reason::Source),
        ("10.1.0.1:4000", "10.1.0.255:5000", Reason::Source),
        ("10.1.0.1:4000", "255.255.255.255:5000", Reason::Source),
        ("10.1.0.1:4000", "224.0.0.1:5000", Reason::Source),
        ("10.1.0.1:4000", "0.0.0.0:5000", Reason::Source),
        ("10.1.0.1:4000", "127.0.0.1:5000", Reason::Source),
        ("10.1.0.1:4000", "10.1.0.2:0", Reason::Source),
        ("[fd00::1]:4000", "[fd00::1]:5000", Reason::Source),
        ("[fd00::1]:4000", "[ff02::1]:5000", Reason::Source),
        ("[fd00::1]:4000", "[::1]:5000", Reason::Source),
        ("[fd00::1]:4000", "[::]:5000", Reason::Source),
        ("[fd00::1]:4000", "[::ffff:10.1.0.2]:5000", Reason::Source),
    ] {
        assert_eq!(
            refused(&frame(&ends(ours, theirs), b"x")),
            reason,
            "{theirs} to {ours}"
        );
    }
    let mut from_group = frame(&theirs(true), b"x");
    from_group[6] = 1;
    assert_eq!(refused(&from_group), Reason::Source);
}

#[test]
fn a_network_has_the_addresses_with_its_prefix() {
    let within = |ip: &str, network: &str, bits| {
        is_within(&ip.parse().unwrap(), &(network.parse().unwrap(), bits))
    };
    assert!(within("10.0.0.77", "10.0.0.1", 24) && !within("10.0.1.1", "10.0.0.1", 24));
    assert!(within("10.0.0.1", "10.0.0.1", 32) && !within("10.0.0.2", "10.0.0.1", 32));
    assert!(within("192.0.2.1", "10.0.0.1", 0) && within("fd00::9", "fd00::1", 64));
    assert!(!within("fd00:0:0:1::9", "fd00::1", 64) && !within("fd00::1", "10.0.0.1", 0));
}

/// As the kernel takes them for sources.
#[test]
fn addresses_that_were_once_reserved_are_those_of_hosts() {
    for theirs in ["240.0.0.1:5000", "255.255.255.254:5000", "0.0.0.1:5000"] {
        let ends = Ends {
            ours: theirs.parse().unwrap(),
            ..self::theirs(true)
        };
        let (seen, _) = parse(&frame(&ends, b"x"), &rules()).unwrap();
        assert_eq!(seen.theirs, ends.ours);
    }
}

#[test]
fn only_hosts_on_a_link_are_sent_long_packets() {
    let fits = |ip: &str, frame_bytes| rules().fits_path(&ip.parse().unwrap(), frame_bytes);
    for near in ["10.1.0.200", "fd00::200"] {
        assert!(fits(near, 9000), "{near}");
    }
    for far in ["10.2.0.2", "fd01::2"] {
        assert!(fits(far, 14 + 1280) && !fits(far, 14 + 1281), "{far}");
    }
}

#[test]
fn a_packet_that_routers_may_fragment_is_one_still() {
    for is_v4 in [true, false] {
        let whole = frame(&theirs(is_v4), &[7; 1300]);
        let mut changed = whole.clone();
        allow_fragments(&mut changed, 0x1234);
        assert!(parse(&changed, &rules()).is_ok(), "is_v4: {is_v4}");
        let expected = if is_v4 {
            &[0x12, 0x34, 0, 0]
        } else {
            &whole[18..22]
        };
        assert_eq!(changed[18..22], *expected);
        changed[18..26].copy_from_slice(&whole[18..26]);
        assert_eq!(changed, whole);
    }
}

#[test]
fn a_link_local_peer_has_the_interface_as_its_scope() {
    let ends = Ends {
        ours: "[fe80::2]:5000".parse().unwrap(),
        ..theirs(false)
    };
    let (seen, _) = parse(&frame(&ends, b"x"), &rules()).unwrap();
    assert_eq!(seen.theirs, "[fe80::2%7]:5000".parse().unwrap());
}

#[test]
fn a_checksum_may_lack_over_ipv4_alone_and_be_left_to_hardware_within_a_machine() {
    let mut none = frame(&theirs(true), b"x");
    none[40..42].fill(0);
    assert!(parse(&none, &rules()).is_ok());
    let mut none = frame(&theirs(false), b"x");
    none[60..62].fill(0);
    assert_eq!(refused(&none), Reason::Checksum);

    let ends = theirs(true);
    let mut partial = frame(&ends, b"left to hardware");
    let udp_bytes = (UDP_BYTES + 16) as u16;
    let pseudo = checksum::pseudo(&ends.ours.ip(), &ends.theirs.ip(), udp_bytes);
    partial[40..42].copy_from_slice(&folded(pseudo));
    assert_eq!(refused(&partial), Reason::Checksum);
    let within = Rules {
        accepts_partial: true,
        ..rules()
    };
    assert!(parse(&partial, &within).is_ok());
    // Where hardware tells of each frame, that counts alone.
    let seen = |seen| parse_for(&partial, &rules(), seen, |_, _| Some(())).is_ok();
    assert!(seen(SumSeen::Partial) && seen(SumSeen::Right) && !seen(SumSeen::Unknown));
    partial[50] ^= 1;
    partial[40] ^= 1;
    let wrong = parse_for(&partial, &rules(), SumSeen::Partial, |_, _| Some(()));
    assert_eq!(wrong.unwrap_err(), Reason::Checksum);
    assert!(parse(&frame(&ends, b"computed"), &within).is_ok());
}

#[test]
fn a_checksum_that_would_be_zero_is_sent_as_ones() {
    let ends = theirs(true);
    // The payload's two bytes make the sum all ones.
    let mut built = frame(&ends, &[0, 0]);
    let sum = u16::from_be_bytes([built[40], built[41]]);
    built = frame(&ends, &sum.to_be_bytes());
    assert_eq!(built[40..42], [0xFF; 2]);
    assert!(parse(&built, &rules()).is_ok());
    assert!(holds(super::checksum::sum(&built[14..34])));
}

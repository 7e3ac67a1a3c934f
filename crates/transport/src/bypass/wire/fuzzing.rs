//! The body of the fuzz target `datagram_frame`: from a frame to the frame of its reply.

use std::net::Ipv4Addr;

use super::{ETHERNET_BYTES, ETHERTYPE_IPV4, IPV4_BYTES, IPV6_BYTES, Rules, checksum};
use super::{PROTOCOL_UDP, UDP_BYTES, finish, header_bytes, parse};

fn rules() -> Rules {
    let addresses = vec![
        Ipv4Addr::new(10, 7, 0, 2).into(),
        "fd00::2".parse().expect("it is an address"),
    ];
    Rules {
        mac: [2, 0, 0, 0, 0, 2],
        interface: 1,
        own: addresses.clone(),
        addresses,
        port: 11211,
        all_hosts: vec![Ipv4Addr::new(10, 7, 0, 255)],
        links: Vec::new(),
        accepts_partial: false,
    }
}

/// Refuses a frame, or turns it into a reply that the peer takes for one of ours: first as it is,
/// then with the checksums right, which no mutation would find.
///
/// # Panics
///
/// If anything else happens.
pub fn frame(data: &[u8]) {
    turn_round(data.to_vec());
    let mut frame = data.to_vec();
    if make_right(&mut frame).is_some() {
        turn_round(frame);
    }
}

fn turn_round(mut frame: Vec<u8>) {
    let rules = rules();
    let Ok((ends, payload)) = parse(&frame, &rules) else {
        return;
    };
    let (ours, theirs) = (ends.ours.ip(), ends.theirs.ip());
    assert!(rules.addresses.contains(&ours) && !rules.addresses.contains(&theirs));
    assert!(!theirs.is_multicast() && !theirs.is_unspecified() && !theirs.is_loopback());
    assert_eq!(payload.start, header_bytes(theirs));
    let before = frame[payload.clone()].to_vec();
    frame.truncate(payload.end);
    finish(&mut frame, &ends, payload.len());
    let of_peer = Rules {
        mac: ends.their_mac,
        interface: 1,
        addresses: vec![theirs],
        own: vec![theirs],
        port: ends.theirs.port(),
        all_hosts: Vec::new(),
        links: Vec::new(),
        accepts_partial: false,
    };
    let (seen, payload) = parse(&frame, &of_peer).expect("a reply is a datagram");
    assert_eq!(frame[payload], before);
    assert_eq!((seen.ours, seen.theirs.ip()), (ends.theirs, ours));
    assert_eq!(
        (seen.our_mac, seen.their_mac),
        (ends.their_mac, ends.our_mac)
    );
}

/// Computes the checksums of what looks like a datagram; `None` if it does not.
fn make_right(frame: &mut [u8]) -> Option<()> {
    let is_v4 = frame.get(12..14)? == ETHERTYPE_IPV4.to_be_bytes();
    let ip_bytes = if is_v4 { IPV4_BYTES } else { IPV6_BYTES };
    let (ip, udp) = frame
        .get_mut(ETHERNET_BYTES..)?
        .split_at_mut_checked(ip_bytes)?;
    let mut sum = 0;
    if is_v4 {
        ip[10..12].fill(0);
        let of_header = checksum::of(checksum::sum(ip));
        ip[10..12].copy_from_slice(&of_header);
        sum += checksum::sum(&ip[12..20]);
    } else {
        sum += checksum::sum(&ip[8..40]);
    }
    let udp_bytes = usize::from(u16::from_be_bytes([*udp.get(4)?, *udp.get(5)?]));
    let udp = udp
        .get_mut(..udp_bytes)
        .filter(|_| udp_bytes >= UDP_BYTES)?;
    udp[6..8].fill(0);
    sum += checksum::sum(&[0, PROTOCOL_UDP]) + checksum::sum(&udp[4..6]) + checksum::sum(udp);
    udp[6..8].copy_from_slice(&checksum::of(sum));
    Some(())
}

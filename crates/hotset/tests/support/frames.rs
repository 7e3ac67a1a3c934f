//! Frames by hand, and a plain check of their checksums.
#![allow(dead_code)]

use std::net::{IpAddr, Ipv4Addr};

pub const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub const PORT: u16 = 11211;
pub const CLIENT_PORT: u16 = 40_001;
pub const REQUEST_ID: [u8; 2] = [0xAB, 0xCD];

pub fn client(is_v4: bool) -> IpAddr {
    let text = if is_v4 { "10.7.0.1" } else { "fd00::1" };
    text.parse().unwrap()
}

pub fn server(is_v4: bool) -> IpAddr {
    let text = if is_v4 { "10.7.0.2" } else { "fd00::2" };
    text.parse().unwrap()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// RFC 1071, one big-endian word after the other.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame from the client with this request in memcached's frame.
pub fn request(is_v4: bool, request: &[u8]) -> Vec<u8> {
    let datagram = [&REQUEST_ID[..], &[0, 0, 0, 1, 0, 0], request].concat();
    frame(client(is_v4), server(is_v4), &datagram)
}

/// A frame with a datagram; both addresses are of one family.
pub fn frame(from: IpAddr, to: IpAddr, datagram: &[u8]) -> Vec<u8> {
    let udp_bytes = (8 + datagram.len()) as u16;
    let mut udp = Vec::new();
    for field in [CLIENT_PORT, PORT, udp_bytes, 0] {
        udp.extend(field.to_be_bytes());
    }
    udp.extend(datagram);
    let sum = udp_checksum(from, to, &udp);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [SERVER_MAC, CLIENT_MAC].concat();
    if from.is_ipv4() {
        let mut ip = vec![0x45, 0x10];
        ip.extend((20 + udp_bytes).to_be_bytes());
        ip.extend([0x12, 0x34, 0x40, 0x00, 57, 17, 0, 0]);
        ip.extend(octets(from));
        ip.extend(octets(to));
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend([0x08, 0x00]);
        frame.extend(ip);
    } else {
        frame.extend([0x86, 0xDD, 0x60, 0x01, 0x23, 0x45]);
        frame.extend(udp_bytes.to_be_bytes());
        frame.extend([17, 57]);
        frame.extend(octets(from));
        frame.extend(octets(to));
    }
    frame.extend(udp);
    frame
}

fn udp_checksum(from: IpAddr, to: IpAddr, udp: &[u8]) -> u16 {
    let bytes = (udp.len() as u32).to_be_bytes();
    let pseudo = [&octets(from)[..], &octets(to), &bytes, &[0, 0, 0, 17]].concat();
    checksum(&[&pseudo, udp].concat())
}

/// The sum of the pseudo-header, which the kernel leaves in the field where hardware is to complete
/// the checksum.
pub fn pseudo_sum(from: IpAddr, to: IpAddr, udp_bytes: usize) -> u16 {
    let bytes = (udp_bytes as u32).to_be_bytes();
    !checksum(&[&octets(from)[..], &octets(to), &bytes, &[0, 0, 0, 17]].concat())
}

/// Checks all that can be checked of a reply to the client, and returns what is in memcached's
/// frame.
pub fn reply(frame: &[u8]) -> Vec<u8> {
    assert_eq!(frame[..6], CLIENT_MAC);
    assert_eq!(frame[6..12], SERVER_MAC);
    let is_v4 = frame[12..14] == [0x08, 0x00];
    let (ip, udp) = frame[14..].split_at(if is_v4 { 20 } else { 40 });
    let udp_bytes = udp.len() as u16;
    if is_v4 {
        assert_eq!(ip[..2], [0x45, 0]);
        assert_eq!(ip[2..4], (20 + udp_bytes).to_be_bytes());
        assert_eq!(ip[4..10], [0, 0, 0x40, 0, 64, 17]);
        assert_eq!(checksum(ip), 0, "the checksum of the IP header");
    } else {
        assert_eq!(frame[12..14], [0x86, 0xDD]);
        assert_eq!(ip[..4], [0x60, 0, 0, 0]);
        assert_eq!(ip[4..6], udp_bytes.to_be_bytes());
        assert_eq!(ip[6..8], [17, 64]);
    }
    let (from, to) = (server(is_v4), client(is_v4));
    assert_eq!(
        ip[ip.len() - 2 * octets(to).len()..],
        [octets(from), octets(to)].concat()
    );
    assert_eq!(
        udp[..4],
        [PORT.to_be_bytes(), CLIENT_PORT.to_be_bytes()].concat()
    );
    assert_eq!(udp[4..6], udp_bytes.to_be_bytes());
    assert_ne!(udp[6..8], [0, 0], "no checksum");
    assert_eq!(
        udp_checksum(from, to, udp),
        0,
        "the checksum of the datagram"
    );
    assert_eq!(udp[8..16], [REQUEST_ID[0], REQUEST_ID[1], 0, 0, 0, 1, 0, 0]);
    udp[16..].to_vec()
}

/// A binary request.
pub fn binary(opcode: u8, key: &[u8], opaque: [u8; 4]) -> Vec<u8> {
    let mut request = vec![0x80, opcode];
    request.extend((key.len() as u16).to_be_bytes());
    request.extend([0; 4]);
    request.extend((key.len() as u32).to_be_bytes());
    request.extend(opaque);
    request.extend([0; 8]);
    request.extend(key);
    request
}

pub fn any_v4() -> IpAddr {
    Ipv4Addr::UNSPECIFIED.into()
}

/// A request and its reply, as the paper's Figures 6 and 7 show them.
pub fn of_the_paper() -> [Vec<u8>; 2] {
    let request = [
        &[0x80, 0x00, 0x00, 0x03][..],
        &[0; 4],
        &[0, 0, 0, 3],
        &[0; 12],
        b"key",
    ];
    let reply = [
        &[0x81, 0x00, 0x00, 0x00][..],
        &[0x04, 0, 0, 0],
        &[0, 0, 0, 9],
        &[0; 12],
        &[0xDE, 0xAD, 0xBE, 0xEF],
        b"value",
    ];
    [request.concat(), reply.concat()]
}

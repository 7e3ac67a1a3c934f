//! Stores of a value, up to the value.

use glimmer_base::limits::{DRAFT_BYTES_MIN, MEDIUM_BYTES_MIN};
use glimmer_proto::binary;

/// A store of `key`.
pub struct Store {
    /// Everything before the value, which has [`DRAFT_BYTES_MIN`] bytes.
    pub head: Vec<u8>,
    /// Everything after the value.
    pub tail: &'static str,
    make: Make,
}

enum Make {
    /// With `LENGTH` where the length of the value is.
    Text(&'static str),
    Packet {
        opcode: u8,
        extras: &'static [u8],
    },
}

impl Make {
    fn head(&self, value_bytes: usize) -> Vec<u8> {
        match *self {
            Make::Text(text) => text.replace("LENGTH", &value_bytes.to_string()).into(),
            Make::Packet { opcode, extras } => packet_head(opcode, extras, b"key", value_bytes),
        }
    }
}

impl Store {
    fn new(make: Make, tail: &'static str) -> Store {
        let head = make.head(DRAFT_BYTES_MIN);
        Store { head, tail, make }
    }

    /// The length of the smallest value that is announced.
    pub fn announced_min(&self) -> usize {
        match self.head.starts_with(b"*") {
            true => DRAFT_BYTES_MIN,
            false => MEDIUM_BYTES_MIN,
        }
    }

    /// The head for a value of another length.
    pub fn with_length(&self, value_bytes: usize) -> Vec<u8> {
        self.make.head(value_bytes)
    }
}

/// Each kind of store.
pub fn stores() -> Vec<Store> {
    const TEXT: &[(&str, &str)] = &[
        ("set key 0 0 LENGTH\r\n", "\r\n"),
        ("set key 0 0 LENGTH noreply\n", "\r\n"),
        ("add key 1 100 LENGTH\r\n", "\r\n"),
        ("replace  key 0 0 LENGTH \r\n", "\r\n"),
        ("cas key 0 0 LENGTH 7 noreply\r\n", "\r\n"),
        ("append key 0 0 LENGTH\r\n", "\r\n"),
        ("prepend key 0 0 LENGTH noreply\r\n", "\r\n"),
        ("ms key LENGTH\r\n", "\r\n"),
        ("ms a2V5 LENGTH b T10 F3 c\r\n", "\r\n"),
        ("ms key LENGTH ME q\r\n", "\r\n"),
        ("ms key LENGTH MR\r\n", "\r\n"),
        ("ms key LENGTH MS C5 I\n", "\r\n"),
        ("ms a2V5 LENGTH MA N60 b\r\n", "\r\n"),
        ("ms key LENGTH MP\r\n", "\r\n"),
        ("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$LENGTH\r\n", "\r\n"),
        (
            "*6\r\n$3\r\nset\r\n$3\r\nkey\r\n$LENGTH\r\n",
            "\r\n$2\r\nEX\r\n$2\r\n10\r\n$2\r\nnx\r\n",
        ),
        (
            "*4\r\n$5\r\nSETEX\r\n$3\r\nkey\r\n$2\r\n10\r\n$LENGTH\r\n",
            "\r\n",
        ),
        (
            "*4\r\n$6\r\npsetex\r\n$3\r\nkey\r\n$1\r\n1\r\n$LENGTH\r\n",
            "\r\n",
        ),
        ("*3\r\n$5\r\nSETNX\r\n$3\r\nkey\r\n$LENGTH\r\n", "\r\n"),
        ("*3\r\n$6\r\nGETSET\r\n$3\r\nkey\r\n$LENGTH\r\n", "\r\n"),
        ("*3\r\n$6\r\nAPPEND\r\n$3\r\nkey\r\n$LENGTH\r\n", "\r\n"),
        (
            "*4\r\n$8\r\nSETRANGE\r\n$3\r\nkey\r\n$1\r\n7\r\n$LENGTH\r\n",
            "\r\n",
        ),
    ];
    /// Set, add and replace, which have flags and an expiry time, then append and prepend; loud
    /// and quiet.
    const PACKETS: [(u8, bool); 10] = [
        (0x01, true),
        (0x02, true),
        (0x03, true),
        (0x11, true),
        (0x12, true),
        (0x13, true),
        (0x0e, false),
        (0x0f, false),
        (0x19, false),
        (0x1a, false),
    ];
    let text = TEXT
        .iter()
        .map(|&(head, tail)| Store::new(Make::Text(head), tail));
    let packets = PACKETS.iter().map(|&(opcode, has_extras)| {
        let extras: &[u8] = if has_extras {
            &[0, 0, 0, 1, 0, 0, 0, 9]
        } else {
            &[]
        };
        Store::new(Make::Packet { opcode, extras }, "")
    });
    text.chain(packets).collect()
}

/// Commands that do not store the value that follows, or not under one key, or not for certain.
pub fn others() -> Vec<Vec<u8>> {
    let login = packet_head(0x21, &[], b"PLAIN", 16_384);
    let text = OTHERS.iter().map(|head| head.as_bytes().to_vec());
    text.chain([login]).collect()
}

const OTHERS: &[&str] = &[
    "set key x 0 16384\r\n",
    "cas key 0 0 16384\r\n",
    "ms key 16384 Mx\r\n",
    "ms k!y 16384 b\r\n",
    "get key 0 0 16384\r\n",
    "*3\r\n$4\r\nMSET\r\n$3\r\nkey\r\n$16384\r\n",
    "*5\r\n$4\r\nMSET\r\n$3\r\nkey\r\n$16384\r\n",
    "*2\r\n$4\r\nECHO\r\n$16384\r\n",
    "*2\r\n$3\r\nGET\r\n$16384\r\n",
    "*3\r\n$5\r\nNOSET\r\n$3\r\nkey\r\n$16384\r\n",
    "*2\r\n$3\r\nSET\r\n$16384\r\n",
    "*3\r\n$3\r\nSET\r\n$16384\r\n",
    "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$16384\r\n",
    "*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\nv\r\n$16384\r\n",
    "*17\r\n$3\r\nSET\r\n$3\r\nkey\r\n$16384\r\n",
    "*4\r\n$5\r\nSETEX\r\n$3\r\nkey\r\n$1\r\n0\r\n$16384\r\n",
    "*4\r\n$5\r\nSETEX\r\n$3\r\nkey\r\n$1\r\nx\r\n$16384\r\n",
    "*4\r\n$5\r\nSETEX\r\n$3\r\nkey\r\n$16384\r\n",
    "*4\r\n$8\r\nSETRANGE\r\n$3\r\nkey\r\n$1\r\nx\r\n$16384\r\n",
    "*4\r\n$8\r\nSETRANGE\r\n$3\r\nkey\r\n$2\r\n-1\r\n$16384\r\n",
    "*4\r\n$8\r\nSETRANGE\r\n$3\r\nkey\r\n$7\r\n1048000\r\n$16384\r\n",
    "*3\r\n$7\r\nDELIFEQ\r\n$3\r\nkey\r\n$16384\r\n",
    "*4\r\n$5\r\nSETNX\r\n$3\r\nkey\r\n$16384\r\n",
];

/// The header of a packet, its extras and its key.
pub fn packet_head(opcode: u8, extras: &[u8], key: &[u8], value_bytes: usize) -> Vec<u8> {
    let mut packet = vec![binary::MAGIC_REQUEST, opcode, 0, key.len() as u8];
    packet.extend([extras.len() as u8, 0, 0, 0]);
    packet.extend(((extras.len() + key.len() + value_bytes) as u32).to_be_bytes());
    packet.extend([0; 12]);
    packet.extend(extras);
    packet.extend(key);
    packet
}

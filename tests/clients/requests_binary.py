"""Generates packets of the binary protocol: valid and borderline ones, and malformed ones after which a connection is closed."""

import struct

import binary as b

KEYS = [b"a", b"a", b"b", b"c", b"\0\xff ", b"k" * 250]
VALUES = [b"", b"1", b"5", b"99", b"18446744073709551615", b"word", b"12 ", b"x" * 300]
EXPTIMES = [0, 0, 0, 1000, 100_000, 3_000_000, 0xFFFFFFFF]
UNIQUES = [0, 0, 0, 0, b"%{unique}", b"%{unique}", 0xFFFF_FFFF_FFFF]
STORES = [b.SET, b.SET, b.ADD, b.REPLACE, b.SETQ, b.ADDQ, b.REPLACEQ]
PLAIN = [b.GET, b.GET, b.GETQ, b.GETK, b.GETKQ, b.DELETE, b.DELETEQ]
COUNTS = [b.INCREMENT, b.INCREMENTQ, b.DECREMENT, b.DECREMENTQ]
TOUCHES = [b.TOUCH, b.GAT, b.GATQ, b.GATK, b.GATKQ]
APPENDS = [b.APPEND, b.PREPEND, b.APPENDQ, b.PREPENDQ]
OTHERS = [b.NOOP, b.FLUSH, b.FLUSHQ, 0x1B, 0x1F, 0x30, 0x7F, 0xFF]


def request(rng):
    pick = rng.choice
    key, value = pick(KEYS), pick(VALUES)
    kind = rng.randrange(16)
    if kind < 5:
        return b.store(
            pick(STORES), key, value, rng.getrandbits(32), pick(EXPTIMES), pick(UNIQUES), rng.getrandbits(32)
        )
    if kind < 9:
        return b.request(pick(PLAIN), key, cas=pick(UNIQUES), opaque=rng.getrandbits(32))
    if kind < 11:
        delta, initial = (pick([0, 1, 5, 2**64 - 1]) for _ in range(2))
        return b.count(pick(COUNTS), key, delta, initial, pick(EXPTIMES), pick(UNIQUES))
    if kind < 13:
        return b.touch(pick(TOUCHES), key, pick(EXPTIMES))
    if kind < 15:
        return b.request(pick(APPENDS), key, value, cas=pick(UNIQUES))
    return b.request(pick(OTHERS), opaque=rng.getrandbits(32))


def conversation(rng):
    """Requests that are sent one at a time, each after the reply to the previous one."""
    return [request(rng) for _ in range(rng.randrange(5, 25))]


def malformed(rng):
    """One packet whose lengths contradict its opcode or each other; the server reports that and closes."""
    # Not an unknown opcode: if such a packet has a key, memcached takes its body for the next packet.
    opcode = rng.choice(STORES + PLAIN + COUNTS + TOUCHES + APPENDS + [b.NOOP, b.FLUSH, b.FLUSHQ, b.QUIT, b.QUITQ])
    extras_bytes, key_bytes, value_bytes = (
        rng.choice([0, 0, 4, 8, 20, 255]),
        rng.choice([0, 1, 250, 251, 300]),
        rng.choice([0, 5]),
    )
    body = rng.randbytes(extras_bytes) + b"k" * key_bytes + b"5" * value_bytes
    body_bytes = rng.choice([len(body)] * 4 + [max(0, len(body) - 6), 0])
    head = struct.pack(">BBHBBHIIQ", b.REQUEST, opcode, key_bytes, extras_bytes, 0, 0, body_bytes, 7, 0)
    return head + body

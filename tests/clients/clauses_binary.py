"""The binary protocol, clause by clause. Clauses are headings of memcached's binary protocol document.

What a row expects was taken from memcached 1.6.18 and 1.6.45.
"""

import struct

from binary import *  # noqa: F403
from conformance import NEWEST, rows

KEY = b"k" * 250
NEVER_MADE = 0xFFFFFFFF
ANY = b"%{_cas}"


def stored(opcode=SET, cas=ANY, opaque=OPAQUE):
    return response(opcode, cas=cas, opaque=opaque)


STORE = (store(SET, b"a", b"x"), stored())

PACKET = rows(
    "Packet Structure",
    {
        "the opaque comes back": [
            (request(NOOP, opaque=0), response(NOOP, opaque=0)),
            (request(NOOP, opaque=0xFFFFFFFF), response(NOOP, opaque=0xFFFFFFFF)),
            (store(SET, b"a", b"x", opaque=7), stored(opaque=7)),
            (request(GET, b"nothing", opaque=8), refusal(GET, NOT_FOUND, opaque=8)),
        ],
        "keys may be any bytes": [
            (store(SET, b"\0 \r\n\xff", b"x"), stored()),
            (request(GETK, b"\0 \r\n\xff"), item(GETK, b"x", key=b"\0 \r\n\xff")),
        ],
        "keys of 250 bytes": [
            (store(SET, KEY, b"x"), stored()),
            (request(GETK, KEY), item(GETK, b"x", key=KEY)),
        ],
        "pipelined": [
            (
                store(SET, b"a", b"1")
                + request(GET, b"a")
                + store(SET, b"a", b"2")
                + request(GETQ, b"b")
                + request(GETQ, b"a"),
                stored() + item(GET, b"1") + stored() + item(GETQ, b"2"),
            ),
        ],
    },
)

STATUS = rows(
    "Response Status",
    {
        "0x0081, unknown command": [
            (request(0x1B), refusal(0x1B, UNKNOWN)),
            (request(0x30, value=b"value"), refusal(0x30, UNKNOWN)),
            (request(0xFF), refusal(0xFF, UNKNOWN)),
        ],
    },
)

GETS = rows(
    "Get, Get Quietly, Get Key, Get Key Quietly",
    {
        "found": [
            (store(SET, b"a", b"value", flags=0xDEADBEEF), stored(cas=b"%{cas}")),
            (request(GET, b"a"), item(GET, b"value", 0xDEADBEEF, cas=b"%{cas}")),
            (request(GETQ, b"a"), item(GETQ, b"value", 0xDEADBEEF, cas=b"%{cas}")),
            (request(GETK, b"a"), item(GETK, b"value", 0xDEADBEEF, b"a", cas=b"%{cas}")),
            (request(GETKQ, b"a"), item(GETKQ, b"value", 0xDEADBEEF, b"a", cas=b"%{cas}")),
        ],
        "the quiet ones are silent on a miss": [
            (request(GETQ, b"a"), b""),
            (request(GETKQ, b"a"), b""),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
        "a miss gives back the key where the hit would": [
            (request(GETK, b"a"), response(GETK, b"a", status=NOT_FOUND)),
        ],
        "an empty value": [(store(SET, b"a", b""), stored()), (request(GET, b"a"), item(GET, b""))],
        "what the text protocol stored": [
            (store(SET, b"a", b"12 "), stored()),
            (request(GET, b"a"), item(GET, b"12 ")),
        ],
        "a batch of quiet ones and a noop": [
            STORE,
            (
                request(GETKQ, b"b", opaque=1)
                + request(GETKQ, b"a", opaque=2)
                + request(GETKQ, b"c", opaque=3)
                + request(NOOP, opaque=4),
                item(GETKQ, b"x", key=b"a", opaque=2) + response(NOOP, opaque=4),
            ),
        ],
    },
)

STORES = rows(
    "Set, Add, Replace",
    {
        "set": [
            (store(SET, b"a", b"1"), stored(cas=b"%{first}")),
            (store(SET, b"a", b"2"), stored(cas=b"%{second}")),
            (request(GET, b"a"), item(GET, b"2", cas=b"%{second}")),
        ],
        "add": [
            (store(ADD, b"a", b"1"), stored(ADD)),
            (store(ADD, b"a", b"2"), refusal(ADD, EXISTS)),
            (request(GET, b"a"), item(GET, b"1")),
        ],
        "replace": [
            (store(REPLACE, b"a", b"1"), refusal(REPLACE, NOT_FOUND)),
            STORE,
            (store(REPLACE, b"a", b"2", flags=3), stored(REPLACE)),
            (request(GET, b"a"), item(GET, b"2", 3)),
        ],
        "a CAS of another item version": [
            (store(SET, b"a", b"1"), stored(cas=b"%{old}")),
            (store(SET, b"a", b"2", cas=b"%{old}"), stored(cas=b"%{new}")),
            (store(SET, b"a", b"3", cas=b"%{old}"), refusal(SET, EXISTS)),
            (store(REPLACE, b"a", b"4", cas=b"%{old}"), refusal(REPLACE, EXISTS)),
            (store(REPLACE, b"a", b"5", cas=b"%{new}"), stored(REPLACE)),
            (request(GET, b"a"), item(GET, b"5")),
        ],
        "a CAS where nothing is stored": [
            (store(SET, b"a", b"1", cas=5), refusal(SET, NOT_FOUND)),
            (store(REPLACE, b"a", b"1", cas=5), refusal(REPLACE, NOT_FOUND)),
        ],
        "quiet ones are silent on success": [
            (store(SETQ, b"a", b"1"), b""),
            (store(ADDQ, b"b", b"2"), b""),
            (store(REPLACEQ, b"a", b"3"), b""),
            (request(GET, b"a"), item(GET, b"3")),
            (store(ADDQ, b"b", b"4"), refusal(ADDQ, EXISTS)),
            (store(REPLACEQ, b"c", b"5"), refusal(REPLACEQ, NOT_FOUND)),
            (store(SETQ, b"a", b"6", cas=0xFFFF_FFFF_FFFF), refusal(SETQ, EXISTS)),
        ],
        "expiry in the past": [
            (store(SET, b"a", b"1", exptime=31 * 24 * 3600), stored()),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
        "a value that is too large": [
            STORE,
            (store(SET, b"a", bytes(2 << 20)), refusal(SET, TOO_LARGE)),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
    },
)

DELETES = rows(
    "Delete",
    {
        "found and not": [
            (request(DELETE, b"a"), refusal(DELETE, NOT_FOUND)),
            STORE,
            (request(DELETE, b"a"), response(DELETE)),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
        "a CAS": [
            (store(SET, b"a", b"1"), stored(cas=b"%{cas}")),
            (request(DELETE, b"a", cas=0xFFFF_FFFF_FFFF), refusal(DELETE, EXISTS)),
            (request(DELETE, b"a", cas=b"%{cas}"), response(DELETE)),
        ],
        "quietly": [
            STORE,
            (request(DELETEQ, b"a"), b""),
            (request(DELETEQ, b"a"), refusal(DELETEQ, NOT_FOUND)),
        ],
    },
)

COUNTS = rows(
    "Increment, Decrement",
    {
        "makes an item of the initial value": [
            (count(INCREMENT, b"a", 5, 100), counted(INCREMENT, 100, b"%{first}")),
            (count(INCREMENT, b"a", 5, 100), counted(INCREMENT, 105, b"%{second}")),
            (request(GET, b"a"), item(GET, b"105", cas=b"%{second}")),
            (count(DECREMENT, b"b", 5, 7), counted(DECREMENT, 7)),
        ],
        "does not where the expiry is all ones": [
            (count(INCREMENT, b"a", 1, 1, NEVER_MADE), refusal(INCREMENT, NOT_FOUND)),
            (count(DECREMENT, b"a", 1, 1, NEVER_MADE), refusal(DECREMENT, NOT_FOUND)),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
        "decrement stops at zero": [
            (store(SET, b"a", b"3"), stored()),
            (count(DECREMENT, b"a", 10), counted(DECREMENT, 0)),
        ],
        "no number": [
            (store(SET, b"a", b"word"), stored()),
            (count(INCREMENT, b"a"), refusal(INCREMENT, NON_NUMERIC)),
            (count(DECREMENT, b"a"), refusal(DECREMENT, NON_NUMERIC)),
        ],
        "a CAS": [
            (store(SET, b"a", b"1"), stored(cas=b"%{cas}")),
            (count(INCREMENT, b"a", cas=0xFFFF_FFFF_FFFF), refusal(INCREMENT, EXISTS)),
            (count(INCREMENT, b"a", cas=b"%{cas}"), counted(INCREMENT, 2)),
        ],
        "quietly": [
            (count(INCREMENTQ, b"a", 5, 10), b""),
            (count(INCREMENTQ, b"a", 5, 10), b""),
            (count(DECREMENTQ, b"a", 1), b""),
            (request(GET, b"a"), item(GET, b"14")),
            (count(INCREMENTQ, b"b", 1, 1, NEVER_MADE), refusal(INCREMENTQ, NOT_FOUND)),
        ],
    },
) + rows(
    "Increment, Decrement",
    {
        "increment wraps at 64 bits": [
            (store(SET, b"a", b"18446744073709551615"), stored()),
            (count(INCREMENT, b"a", 2), counted(INCREMENT, 1)),
        ],
    },
    # After a number of 2^63 or more, 1.6.18 looks for a sign in the following bytes.
    since=NEWEST,
)

APPENDS = rows(
    "Append, Prepend",
    {
        "to an item": [
            (store(SET, b"a", b"1", flags=9), stored()),
            (request(APPEND, b"a", b"2"), stored(APPEND, b"%{cas}")),
            (request(PREPEND, b"a", b"0"), stored(PREPEND, b"%{last}")),
            (request(GET, b"a"), item(GET, b"012", 9, cas=b"%{last}")),
        ],
        "to nothing": [
            (request(APPEND, b"a", b"1"), refusal(APPEND, NOT_STORED)),
            (request(PREPEND, b"a", b"1"), refusal(PREPEND, NOT_STORED)),
        ],
        "quietly": [
            STORE,
            (request(APPENDQ, b"a", b"2"), b""),
            (request(PREPENDQ, b"a", b"0"), b""),
            (request(GET, b"a"), item(GET, b"0x2")),
            (request(APPENDQ, b"b", b"2"), refusal(APPENDQ, NOT_STORED)),
        ],
    },
)

TOUCHES = rows(
    "Touch, GAT, GATQ",
    {
        "touch answers with the item's flags": [
            (store(SET, b"a", b"x", flags=7), stored()),
            (touch(TOUCH, b"a", 100), item(TOUCH, b"", 7)),
            (touch(TOUCH, b"b", 100), refusal(TOUCH, NOT_FOUND)),
        ],
        "gat answers as get": [
            (store(SET, b"a", b"x", flags=7), stored()),
            (touch(GAT, b"a", 100), item(GAT, b"x", 7)),
            (touch(GATQ, b"a", 100), item(GATQ, b"x", 7)),
            (touch(GATK, b"a", 100), item(GATK, b"x", 7, b"a")),
            (touch(GATKQ, b"a", 100), item(GATKQ, b"x", 7, b"a")),
        ],
        "gat of nothing": [
            (touch(GAT, b"a", 100), refusal(GAT, NOT_FOUND)),
            (touch(GATQ, b"a", 100), b""),
            (touch(GATKQ, b"a", 100), b""),
        ],
        "the item expires": [
            STORE,
            (touch(TOUCH, b"a", 31 * 24 * 3600), item(TOUCH, b"")),
            (request(GET, b"a"), refusal(GET, NOT_FOUND)),
        ],
    },
)

OTHERS = (
    rows(
        "No-op",
        {"an empty answer, behind all that came before": [(request(GETQ, b"a") + request(NOOP), response(NOOP))]},
    )
    + rows(
        "Flush",
        {
            "at once": [STORE, (request(FLUSH), response(FLUSH)), (request(GET, b"a"), refusal(GET, NOT_FOUND))],
            "with an expiry of 0": [
                STORE,
                (request(FLUSH, extras=bytes(4)), response(FLUSH)),
                (request(GETQ, b"a"), b""),
            ],
            "later": [
                STORE,
                (request(FLUSH, extras=struct.pack(">I", 1000)), response(FLUSH)),
                (request(GET, b"a"), item(GET, b"x")),
                (request(FLUSH), response(FLUSH)),
            ],
            "quietly": [STORE, (request(FLUSHQ), b""), (request(GET, b"a"), refusal(GET, NOT_FOUND))],
        },
    )
    + rows(
        "Stat",
        {
            "reset ends with an empty name": [(request(STAT, b"reset"), response(STAT))],
            "an unknown group": [(request(STAT, b"nonsense"), refusal(STAT, NOT_FOUND))],
            "spaces around a name": [(request(STAT, name), refusal(STAT, NOT_FOUND)) for name in (b" ", b" items", b"items ", b"items x")],
            "statistics of the text protocol alone": [(request(STAT, b"extstore"), refusal(STAT, NOT_FOUND))],
        },
    )
)

BINARY = PACKET + STATUS + GETS + STORES + DELETES + COUNTS + APPENDS + TOUCHES + OTHERS

"""Packets of the binary protocol."""

import re
import struct

OPAQUE = 0x01020304
REQUEST, RESPONSE = 0x80, 0x81

GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ = range(14)
APPEND, PREPEND, STAT, SETQ, ADDQ, REPLACEQ, DELETEQ, INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ = range(0x0E, 0x19)
APPENDQ, PREPENDQ = 0x19, 0x1A
TOUCH, GAT, GATQ, SASL_LIST, SASL_AUTH, SASL_STEP, GATK, GATKQ = 0x1C, 0x1D, 0x1E, 0x20, 0x21, 0x22, 0x23, 0x24

OK, NOT_FOUND, EXISTS, TOO_LARGE, INVALID, NOT_STORED, NON_NUMERIC = range(7)
AUTH_ERROR, UNKNOWN, OUT_OF_MEMORY = 0x20, 0x81, 0x82

# memcached's error text for each status.
TEXTS = {
    NOT_FOUND: b"Not found",
    EXISTS: b"Data exists for key.",
    TOO_LARGE: b"Too large.",
    INVALID: b"Invalid arguments",
    NOT_STORED: b"Not stored.",
    NON_NUMERIC: b"Non-numeric server-side value for incr or decr",
    AUTH_ERROR: b"Auth failure.",
    UNKNOWN: b"Unknown command",
    OUT_OF_MEMORY: b"Out of memory allocating item",
}


def packet(magic, opcode, status, key, value, extras, cas, opaque):
    """`cas` is a number, or a name for eight bytes, as in `%{name}`."""
    body_bytes = len(extras) + len(key) + len(value)
    head = struct.pack(">BBHBBHII", magic, opcode, len(key), len(extras), 0, status, body_bytes, opaque)
    return head + (cas if isinstance(cas, bytes) else struct.pack(">Q", cas)) + extras + key + value


PLACE = re.compile(rb"%\{\w+\}")


def key_of(request):
    """The key of a request, whose CAS unique may be a name."""
    request = PLACE.sub(bytes(8), request)
    key_bytes, extras_bytes = struct.unpack_from(">HB", request, 2)
    return request[24 + extras_bytes :][:key_bytes]


def status_of(response):
    return int.from_bytes(response[6:8], "big")


def request(opcode, key=b"", value=b"", extras=b"", cas=0, opaque=OPAQUE):
    return packet(REQUEST, opcode, 0, key, value, extras, cas, opaque)


def response(opcode, key=b"", value=b"", extras=b"", cas=0, status=OK, opaque=OPAQUE):
    return packet(RESPONSE, opcode, status, key, value, extras, cas, opaque)


def refusal(opcode, status, opaque=OPAQUE):
    return response(opcode, value=TEXTS[status], status=status, opaque=opaque)


def store(opcode, key, value, flags=0, exptime=0, cas=0, opaque=OPAQUE):
    """set, add, replace, and their quiet forms."""
    return request(opcode, key, value, struct.pack(">II", flags, exptime), cas, opaque)


def count(opcode, key, delta=1, initial=0, exptime=0, cas=0):
    """increment, decrement, and their quiet forms. An exptime of all ones means: fail if there is no item."""
    return request(opcode, key, extras=struct.pack(">QQI", delta, initial, exptime), cas=cas)


def counted(opcode, number, cas=b"%{_cas}"):
    return response(opcode, value=struct.pack(">Q", number), cas=cas)


def touch(opcode, key, exptime):
    """touch, gat, and gat's other forms."""
    return request(opcode, key, extras=struct.pack(">I", exptime))


def item(opcode, value, flags=0, key=b"", cas=b"%{_cas}", opaque=OPAQUE):
    """The response to a retrieval that found an item."""
    return response(opcode, key, value, struct.pack(">I", flags), cas, opaque=opaque)

"""Differences that docs/memcached-differences.md explains under the same names, told by the request and the two answers."""

from dataclasses import dataclass
from typing import Callable

NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
VAGUE = b"CLIENT_ERROR invalid or duplicate flag\r\n"


@dataclass(frozen=True)
class Known:
    name: str
    kind: str
    # Whether this is why memcached's answer to the request and ours are not the same.
    explains: Callable[[bytes, bytes, bytes], bool]


def shutdown_refusal(request, theirs, ours):
    return theirs.replace(b"ERROR: shutdown not", b"SERVER_ERROR: shutdown not") == ours


def md_errors(request, theirs, ours):
    return request.startswith(b"md ") and theirs == VAGUE and ours.startswith(b"CLIENT_ERROR ")


def ma_quiet_vivify(request, theirs, ours):
    flags = request.split()[2:]
    return request.startswith(b"ma ") and b"q" in flags and theirs.startswith((b"HD", b"VA")) and ours == b""


def cas_before_number(request, theirs, ours):
    return request.startswith(b"ma ") and theirs == NOT_A_NUMBER and ours.startswith(b"EX")


def binary_cas_before_number(request, theirs, ours):
    statuses = int.from_bytes(theirs[6:8], "big"), int.from_bytes(ours[6:8], "big")
    return request[1] in (0x05, 0x06, 0x15, 0x16) and statuses == (6, 2)


KNOWN = [
    Known("shutdown-refusal", "text", shutdown_refusal),
    Known("md-errors", "meta", md_errors),
    Known("ma-quiet-vivify", "meta", ma_quiet_vivify),
    Known("cas-before-number", "meta", cas_before_number),
    Known("cas-before-number", "binary", binary_cas_before_number),
]


def name_of(kind, request, theirs, ours):
    """The name of the known difference, or none."""
    return next((known.name for known in KNOWN if known.kind == kind and known.explains(request, theirs, ours)), None)

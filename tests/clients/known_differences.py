"""Differences that docs/memcached-differences.md explains under the same names, told by the request and the two answers."""

import base64
import re
from dataclasses import dataclass
from typing import Callable

ERROR = b"ERROR\r\n"
BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
NO_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
VAGUE = b"CLIENT_ERROR invalid or duplicate flag\r\n"


@dataclass(frozen=True)
class Known:
    name: str
    kind: str
    # Whether this is why memcached's answer to the request and ours are not the same.
    explains: Callable[[bytes, bytes, bytes], bool]


def error_lines(request, theirs, ours):
    """Both refuse: ours in one line, or in silence where the line ends with `noreply`."""
    lines = theirs.splitlines(keepends=True)
    return all(line.startswith((b"ERROR", b"CLIENT_ERROR")) for line in lines) and ours in (BAD_LINE, BAD_LINE + ERROR, ERROR, b"")


def shutdown_refusal(request, theirs, ours):
    return theirs.replace(b"ERROR: shutdown not", b"SERVER_ERROR: shutdown not") == ours


def md_errors(request, theirs, ours):
    return request.startswith(b"md ") and theirs == VAGUE and ours.startswith(b"CLIENT_ERROR ")


def ma_quiet_vivify(request, theirs, ours):
    flags = request.split()[2:]
    return request.startswith(b"ma ") and b"q" in flags and theirs.startswith((b"HD", b"VA")) and ours == b""


def long_opaque(request, theirs, ours):
    return ours == b"CLIENT_ERROR opaque token too long\r\n" and theirs.startswith((b"CLIENT_ERROR", b"NF", b"EX", b"EN"))


def vivified_base64_key(request, theirs, ours):
    """Ours shows in base64 the key of an item that `mg` made under it."""
    shown = re.search(rb" k(\S+) b(?= |\r)", ours)
    return shown is not None and ours.replace(shown[0], b" k" + base64.b64decode(shown[1])) == theirs


def long_number(request, theirs, ours):
    """A stream in which a value of many digits was stored, and ours does not take it for a number."""
    return re.search(rb"\n\d{25,}\r", request) is not None and NO_NUMBER in ours and NO_NUMBER not in theirs


def expired_t(request, theirs, ours):
    """Ours has no seconds left where memcached's time to live is a negative number, printed as 32 bits without a sign."""
    return request.startswith((b"mg ", b"ma ")) and theirs != ours and re.sub(rb" t42949\d{5}(?= |\r)", b" t0", theirs) == ours


KNOWN = [
    Known("error-lines", "text-refusals", error_lines),
    Known("shutdown-refusal", "text", shutdown_refusal),
    Known("long-number", "text", long_number),
    Known("md-errors", "meta", md_errors),
    Known("long-opaque", "meta", long_opaque),
    Known("vivified-base64-key", "meta", vivified_base64_key),
    Known("expired-t", "meta", expired_t),
    Known("ma-quiet-vivify", "meta", ma_quiet_vivify),
]


def name_of(kind, request, theirs, ours):
    """The name of the known difference, or none."""
    return next((known.name for known in KNOWN if known.kind == kind and known.explains(request, theirs, ours)), None)

"""Differences that docs/memcached-differences.md explains under the same names, told by the request and the two answers."""

import base64
import re
from dataclasses import dataclass
from typing import Callable

ERROR = b"ERROR\r\n"
BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
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


KNOWN = [
    Known("error-lines", "text-refusals", error_lines),
    Known("shutdown-refusal", "text", shutdown_refusal),
    Known("md-errors", "meta", md_errors),
    Known("long-opaque", "meta", long_opaque),
    Known("vivified-base64-key", "meta", vivified_base64_key),
    Known("ma-quiet-vivify", "meta", ma_quiet_vivify),
]


def name_of(kind, request, theirs, ours):
    """The name of the known difference, or none."""
    return next((known.name for known in KNOWN if known.kind == kind and known.explains(request, theirs, ours)), None)

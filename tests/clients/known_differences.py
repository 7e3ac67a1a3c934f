"""Differences that docs/memcached-differences.md explains under the same names, recognised by the request and the two answers."""

import base64
import re
from dataclasses import dataclass
from typing import Callable

import binary

ERROR = b"ERROR\r\n"
BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
NO_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
VAGUE = b"CLIENT_ERROR invalid or duplicate flag\r\n"
# Flags that `mg` shows only for an item that existed before.
OF_OLD = {b"h1", b"W", b"X", b"Z"}
# As signed 64-bit numbers, this and larger ones would be negative.
HUGE = 1 << 63
GETS = {binary.GET, binary.GETQ, binary.GETK, binary.GETKQ}
QUIET_COUNTS = {binary.INCREMENTQ, binary.DECREMENTQ}
DOWN = {binary.DECREMENT, binary.DECREMENTQ}
COUNTS = {binary.INCREMENT} | QUIET_COUNTS | DOWN


@dataclass(frozen=True)
class Known:
    name: str
    kind: str
    # Whether this explains the difference between memcached's answer and ours.
    explains: Callable[[bytes, bytes, bytes], bool]


def error_lines(request, theirs, ours):
    """Both refuse: ours with one line, or silently if the line ends with `noreply`."""
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
    """Ours shows the key of an item that `mg` created under a base64 key in base64."""
    shown = re.search(rb" k(\S+) b(?= |\r)", ours)
    return shown is not None and ours.replace(shown[0], b" k" + base64.b64decode(shown[1])) == theirs


def long_number(request, theirs, ours):
    """A stream in which a value of many digits was stored, which ours does not accept as a number."""
    return re.search(rb"\n\d{25,}\r", request) is not None and NO_NUMBER in ours and NO_NUMBER not in theirs


def expired_t(request, theirs, ours):
    """Ours shows no remaining seconds where memcached's time to live is negative, printed as an unsigned 32-bit number."""
    return request.startswith((b"mg ", b"ma ")) and theirs != ours and re.sub(rb" t42949\d{5}(?= |\r)", b" t0", theirs) == ours


def huge_number(request, theirs, ours):
    """memcached has refused a number of 2^63 or more that ours has accepted; our later replies follow from that number."""
    if theirs != NO_NUMBER or not request.startswith((b"ma ", b"incr ", b"decr ")):
        return False
    words = request.split()
    if words[0] != b"ma":
        return was_huge(int(ours), int(words[2]), down=words[0] == b"decr") if ours.strip().isdigit() else ours == b""
    if not ours.startswith(b"VA "):
        return ours == b"" or ours.startswith(b"HD")
    delta = next((int(word[1:]) for word in words[2:] if word.startswith(b"D")), 1)
    return was_huge(int(ours.split(b"\r\n")[1]), delta, down=bool({b"MD", b"M-"} & set(words[2:])))


def huge_binary_number(request, theirs, ours):
    """The same in the binary protocol, where quiet forms have no reply."""
    opcode = request[1]
    if opcode not in COUNTS or binary.status_of(theirs) != binary.NON_NUMERIC:
        return False
    if ours == b"":
        return opcode in QUIET_COUNTS
    delta = int.from_bytes(binary.PLACE.sub(bytes(8), request)[24:32], "big")
    number = int.from_bytes(ours[24:32], "big")
    return binary.status_of(ours) == binary.OK and was_huge(number, delta, down=opcode in DOWN)


def was_huge(result, delta, down):
    """Whether a number of 2^63 or more, changed by `delta`, gives `result`."""
    if down:
        return result == 0 or result + delta >= HUGE
    return (result - delta) % (1 << 64) >= HUGE


def huge_number_in_stream(request, theirs, ours):
    """A stream in which such a number was stored, and memcached refused to count from it while ours did not."""
    stored = (int(number) for number in re.findall(rb"\n *(\d{19,20})\r", request))
    return any(HUGE <= number < 2 * HUGE for number in stored) and theirs.count(NO_NUMBER) > ours.count(NO_NUMBER)


def count_in_place(request, theirs, ours):
    """memcached's item was replaced by a count: it is not fetched, not stale, and its number is not padded."""

    def parts(answer):
        line, _, rest = answer.partition(b"\r\n")
        words = line.split()
        if words[0] == b"VA":
            # The size of the value.
            del words[1]
        return [word for word in words if word not in OF_OLD | {b"h0"}], rest.split()

    return request.startswith(b"mg ") and not OF_OLD & set(theirs.split()) and parts(theirs) == parts(ours)


def binary_count_in_place(request, theirs, ours):
    """The same in the binary protocol: the number is read, and is not padded in memcached."""
    reads = request[1] in GETS and binary.status_of(theirs) == binary.status_of(ours) == binary.OK
    # Behind the header are the flags, and the key where it was asked for.
    return reads and ours[24:].startswith(theirs[24:]) and set(ours[len(theirs) :]) == set(b" ")


KNOWN = [
    Known("error-lines", "text-refusals", error_lines),
    Known("shutdown-refusal", "text", shutdown_refusal),
    Known("long-number", "text", long_number),
    Known("md-errors", "meta", md_errors),
    Known("long-opaque", "meta", long_opaque),
    Known("vivified-base64-key", "meta", vivified_base64_key),
    Known("expired-t", "meta", expired_t),
    Known("ma-quiet-vivify", "meta", ma_quiet_vivify),
    Known("count-in-place", "meta", count_in_place),
    Known("count-in-place", "binary", binary_count_in_place),
    Known("huge-number", "meta", huge_number),
    Known("huge-number", "binary", huge_binary_number),
    Known("huge-number", "text", huge_number_in_stream),
]


def name_of(kind, request, theirs, ours):
    """The name of the known difference, or None."""
    return next((known.name for known in KNOWN if known.kind == kind and known.explains(request, theirs, ours)), None)

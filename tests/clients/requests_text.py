"""Generates requests of the text protocol: valid, borderline and malformed.

What memcached 1.6.18 takes otherwise than newer ones, whose parser is another, is told apart: it is generated in a stream only for a newer
memcached, and for an older one in conversations of refused lines alone, so that the known difference does not hide others.
"""

KEYS = [b"a", b"b", b"b", b"c\t", b"d\r", "\u00fc".encode(), b"0", b"1", b"noreply"]
NUMBERS = """0 0 0 1 5 10 007 +3 -0 -1 4294967295 4294967296 4294967396 2147483648 -4294967295 9223372036854775807
9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 -18446744073709551615 1.5 0x1 abc - + 3-"""
NUMBERS = [*NUMBERS.encode().split(), b"\t4", b"6\tx", b"8\x0b", b"\t", b"5\t-"]
# Far from now, so that the current second does not matter.
EXPTIMES = """0 0 0 0 1000 100000 2147483647 -1 -100 -2147483648 2147483648 4294968296 3000000 +900 abc 1.5
9223372036854775807 9223372036854775808"""
EXPTIMES = [*EXPTIMES.encode().split(), b"\t900", b""]
# No value is only white space: memcached would look for digits after the item.
VALUES = (
    b"|1|9|10|99|100|18446744073709551615|18446744073709551616| 12|12 |12 abc|12abc|+5|-5|-0|abc|get a|7\0|\t\x0b8\x0cx"
)
VALUES = [*VALUES.split(b"|"), b"0000000000000000000000000000001"]
WORDS = [b"0", b"0", b"1", b"5", b"10", b"007", b"4294967295", b"2147483647", b"-1", b"-100", b"abc", b"1.5", b"0x1", b"18446744073709551616"]
NOREPLY = [b""] * 4 + [b" noreply", b" noreply", b" noreplyx"]
NEWER_NOREPLY = [*NOREPLY, b" 0", b" noreply 0", b" x noreply", b" a b c"]
ENDS = [b"\r\n"] * 5 + [b"\n", b" \r\n"]
NEWER_ENDS = [*ENDS, b"\r\r\n", b"\t\r\n", b"\0x\r\n"]
OTHERS = b"""verbosity 0|verbosity 0 noreply|verbosity abc
flush_all|flush_all noreply|flush_all 0|flush_all -1|flush_all abc|flush_all 0 0
mx k|quitx|shutdown|shutdown x|stats reset|bogus"""
OTHERS = OTHERS.replace(b"\n", b"|").split(b"|")
# Refused by old and new versions, with different texts.
REFUSED = b"""|g|get|gets|gat|set|set a|set a 0 0|incr|incr a|touch|touch a|delete|verbosity|incr a 1x|touch a 1x|gat 1x a|set a 0 0 -1|set a 0 0 x
set a 0 0 -1 noreply|set a x 0 2@12|set a -1 0 2@12|set a 0 1x 2@12|set a 0 1x 2 noreply@12|cas a 0 0 2@12|cas a 0 0 2 x@12|cas a 0 0 2 noreply@12
bogus noreply|verbosity abc noreply|flush_all x noreply"""
REFUSED = REFUSED.replace(b"\n", b"|").replace(b"@", b"\r\n").split(b"|")
NEWER_OTHERS = [*REFUSED, *OTHERS, *b"bget a|gat 0|verbosity 0 0 0|flush_all 0 0 0|flush_all 2147483648 noreply|bogus\0|\x80".split(b"|")]
# Ends a value for which a malformed request has left the server waiting.
ENDING = b"\n" * 16


def request(rng, newer):
    """One request, rarely a valid one."""
    pick = rng.choice
    space = pick([b" ", b" ", b" ", b" ", b"  "])
    end = pick(NEWER_ENDS if newer else ENDS)
    numbers, exptimes = (NUMBERS, EXPTIMES) if newer else (WORDS, WORDS)
    noreply = pick(NEWER_NOREPLY if newer else NOREPLY)
    kind = pick(["get", "gat", "store", "store", "store", "store", "count", "count", "delete", "touch", "other"])
    if kind == "get":
        line = space.join([b"get", pick(KEYS), pick(KEYS), pick([b"", b"x", b"b"])])
    elif kind == "gat":
        # A number of 2^31 or more is truncated by the old version and refused by the new one.
        line = space.join([b"gat", fitting(pick(exptimes), newer), pick(KEYS), pick(KEYS)])
    elif kind == "store":
        line, end = storage(rng, space, end, noreply, newer), b"\r\n"
    elif kind == "count":
        line = space.join([pick([b"incr", b"decr"]), pick(KEYS), pick(numbers)]) + noreply
    elif kind == "delete":
        # The newer version accepts anything after the key, and takes the key itself for `noreply`.
        key, noreply = (pick(KEYS), noreply) if newer else (pick(KEYS[:-1]), pick([b"", b" noreply"]))
        line = b"delete" + space + key + pick([b"", b"", b" 0"]) + noreply
    elif kind == "touch":
        line = space.join([b"touch", pick(KEYS), fitting(pick(exptimes), newer)]) + noreply
    else:
        line = pick(NEWER_OTHERS if newer else OTHERS)
    return (pick([b"", b"", b"", b"", b" ", b"  "]) if newer else b"") + line + end


def fitting(exptime, newer):
    """An expiry time that old and new versions of memcached treat in the same way."""
    return exptime if newer or exptime != b"4294967295" else b"-2147483648"


def storage(rng, space, end, noreply, newer):
    """A storage command and its value, of about the length in the line."""
    pick = rng.choice
    if rng.randrange(100) == 0:
        # At the limit of an item.
        value = b"\n" * (1_048_500 + rng.randrange(30))
        return b"%b b 1 0 %d\r\n%b" % (pick([b"set", b"add", b"append"]), len(value), value)
    name = pick([b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas"])
    value = pick(VALUES)
    lengths = [b"%d" % len(value)] * 5
    if newer:
        lengths += [b"%d" % (len(value) + 1), pick([b"0", b"1", b"5", b"-1", b"abc", b"+2", b"4294967297", b"-4294967295", b"", b"1.5"])]
    length = pick(lengths)
    uniques = [b" 18446744073709551000"] * 2 + ([b" abc", b" -1", b""] if newer else [])
    unique = pick(uniques) if name == b"cas" else b""
    # If a line is malformed but has a valid length, only the new version swallows the value.
    flags = pick(NUMBERS if newer else [b"0", b"7", b"+3", b"4294967296"])
    exptime = pick(EXPTIMES if newer else [b"0", b"1000", b"-1", b"+900"])
    return space.join([name, pick(KEYS), flags, exptime, length]) + unique + noreply + end + value


def stream(rng, newer):
    """Several requests that are sent together, and the end of the last one."""
    return [request(rng, newer) for _ in range(rng.randrange(1, 12))] + ([ENDING] if newer else [])


def refused(rng):
    """Lines that are refused, sent one at a time."""
    return [rng.choice(REFUSED) + b"\r\n" for _ in range(rng.randrange(1, 12))]

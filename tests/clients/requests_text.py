"""Generates requests of the text protocol: valid, borderline and malformed."""

KEYS = [b"a", b"b", b"b", b"c\t", b"d\r", "\u00fc".encode(), b"noreply", b"0", b"1"]
NUMBERS = """0 0 0 1 5 10 007 +3 -0 -1 4294967295 4294967296 4294967396 2147483648 -4294967295 9223372036854775807
9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 -18446744073709551615 1.5 0x1 abc - + 3-"""
NUMBERS = [*NUMBERS.encode().split(), b"\t4", b"6\tx", b"8\x0b", b"\t", b"5\t-"]
# Far from now, on either side: which second it is must not matter.
EXPTIMES = """0 0 0 0 1000 100000 2147483647 -1 -100 -2147483648 2147483648 4294968296 3000000 +900 abc 1.5
9223372036854775807 9223372036854775808"""
EXPTIMES = [*EXPTIMES.encode().split(), b"\t900", b""]
# None is white space alone: memcached would look for digits in what lies behind the item.
VALUES = (
    b"|1|9|10|99|100|18446744073709551615|18446744073709551616| 12|12 |12 abc|12abc|+5|-5|-0|abc|get a|7\0|\t\x0b8\x0cx"
)
VALUES = [*VALUES.split(b"|"), b"0000000000000000000000000000001"]
NOREPLY = [b""] * 4 + [b" noreply", b" noreply", b" noreplyx", b" 0", b" noreply 0", b" x noreply", b" a b c"]
ENDS = [b"\r\n"] * 4 + [b"\n", b" \r\n", b"\r\r\n", b"\t\r\n", b"\0x\r\n"]
OTHERS = b"""|get|gat|gat 0|set|set a|incr a|touch a|delete|verbosity 0|verbosity|verbosity 0 noreply|verbosity abc|verbosity 0 0 0
flush_all|flush_all noreply|flush_all 0|flush_all -1|flush_all abc|flush_all 0 0|flush_all 0 0 0|flush_all 2147483648 noreply
mn|mx|quitx|shutdown|shutdown x|stats reset|bogus|g|bogus\0|\x80"""
OTHERS = OTHERS.replace(b"\n", b"|").split(b"|")
# Ends whatever value a malformed request has left the server waiting for.
ENDING = b"\n" * 16


def request(rng):
    """One request, rarely a good one."""
    pick = rng.choice
    space = pick([b" ", b" ", b" ", b" ", b"  "])
    end = pick(ENDS)
    kind = pick(["get", "gat", "store", "store", "store", "store", "count", "count", "delete", "touch", "other"])
    if kind == "get":
        line = space.join([pick([b"get", b"bget", b"get"]), pick(KEYS), pick(KEYS), pick([b"", b"x", b"b"])])
    elif kind == "gat":
        line = space.join([b"gat", pick(EXPTIMES), pick(KEYS), pick(KEYS)])
    elif kind == "store":
        line, end = storage(rng, space, end), b"\r\n"
    elif kind == "count":
        line = space.join([pick([b"incr", b"decr"]), pick(KEYS), pick(NUMBERS)]) + pick(NOREPLY)
    elif kind == "delete":
        line = b"delete" + space + pick(KEYS) + pick([b"", b"", b"", b" 0", b" 1", b" 00"]) + pick(NOREPLY)
    elif kind == "touch":
        line = space.join([b"touch", pick(KEYS), pick(EXPTIMES)]) + pick(NOREPLY)
    else:
        line = pick(OTHERS)
    return pick([b"", b"", b"", b"", b" ", b"  "]) + line + end


def storage(rng, space, end):
    """A storage command and its value, of the length that the line says or nearly so."""
    pick = rng.choice
    if rng.randrange(100) == 0:
        # At the limit of an item.
        value = b"\n" * (1_048_500 + rng.randrange(30))
        return b"%b b 1 0 %d\r\n%b" % (pick([b"set", b"add", b"append"]), len(value), value)
    name = pick([b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas"])
    value = pick(VALUES)
    length = pick([len(value)] * 5 + [len(value) + 1, None])
    if length is None:
        length = pick([b"0", b"1", b"5", b"-1", b"abc", b"+2", b"4294967297", b"-4294967295", b"", b"1.5"])
    else:
        length = b"%d" % length
    unique = pick([b" 18446744073709551000"] * 2 + [b" abc", b" -1", b""]) if name == b"cas" else b""
    return space.join([name, pick(KEYS), pick(NUMBERS), pick(EXPTIMES), length]) + unique + pick(NOREPLY) + end + value


def stream(rng):
    """Several requests that are sent together, and what ends the last."""
    return [request(rng) for _ in range(rng.randrange(1, 12))] + [ENDING]

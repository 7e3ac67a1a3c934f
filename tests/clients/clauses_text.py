"""What memcached answers, byte for byte: each transcript runs against memcached as well as against the server.

A transcript's name begins with the heading of memcached's protocol.txt that it is about.
"""

KEY = b"k" * 250
LONG_KEY = b"k" * 251
BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
BAD_DELTA = b"CLIENT_ERROR invalid numeric delta argument\r\n"
BAD_EXPTIME = b"CLIENT_ERROR invalid exptime argument\r\n"
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
ERROR = b"ERROR\r\n"
STORED = b"STORED\r\n"
END = b"END\r\n"


def value(key, data, flags=0):
    return b"VALUE %b %d %d\r\n%b\r\n" % (key, flags, len(data), data)


def store(data, key=b"a", verb=b"set", flags=0, exptime=0, rest=b""):
    return b"%b %b %d %d %d%b\r\n%b\r\n" % (verb, key, flags, exptime, len(data), rest, data)


TRANSCRIPTS = {
    "Error strings: unknown commands": [
        (b"foo\r\n", ERROR),
        (b"GET a\r\n", ERROR),
        (b"get\ta\r\n", ERROR),
        (b"x" * 2000 + b"\r\n", ERROR),
        (b"Set a 0 0 2\r\n12\r\n", ERROR + ERROR),
    ],
    "Storage commands: set and get": [
        (b"get a\r\n", END),
        (store(b"abc"), STORED),
        (b"get a\r\n", value(b"a", b"abc") + END),
        (store(b"", flags=4294967295), STORED),
        (b"get a\r\n", value(b"a", b"", 4294967295) + END),
        (store(b"\r\nEND\r\n"), STORED),
        (b"get a\r\n", value(b"a", b"\r\nEND\r\n") + END),
        (b"get a b a\r\n", value(b"a", b"\r\nEND\r\n") * 2 + END),
        (b"set noreply 0 0 1\r\n1\r\n", STORED),
        (b"get noreply\r\n", value(b"noreply", b"1") + END),
    ],
    "Commands: spaces": [
        (b"set  a  0  0  1\r\n1\r\n", STORED),
        (b"set a 0 0 1 \r\n1\r\n", STORED),
        (b"get  a   b\r\n", value(b"a", b"1") + END),
        (b"get a \r\n", value(b"a", b"1") + END),
    ],
    "Commands: line ends": [
        (b"set a 0 0 1\n1\r\n", STORED),
        (b"get a\n", value(b"a", b"1") + END),
    ],
    "Keys: keys": [
        (store(b"1", KEY), STORED),
        (b"get " + KEY + b"\r\n", value(KEY, b"1") + END),
        (b"get " + LONG_KEY + b"\r\n", BAD_LINE),
        (b"delete " + LONG_KEY + b"\r\n", BAD_LINE),
        (b"incr " + LONG_KEY + b" 1\r\n", BAD_LINE),
        (b"touch " + LONG_KEY + b" 1\r\n", BAD_LINE),
        (store(b"1", b"\xff\x01"), STORED),
        (b"get \xff\x01\r\n", value(b"\xff\x01", b"1") + END),
    ],
    # Sent alone, because memcached loses this reply if others are sent with it.
    "Keys: a long key in gat": [(b"gat 1 " + LONG_KEY + b"\r\n", BAD_LINE)],
    "Error strings: numbers": [
        (b"set a b c d\r\n", BAD_LINE),
        (b"set a 0 0 -1\r\n", BAD_LINE),
        (b"set a 0 0 99999999999999999999\r\n12\r\n", BAD_LINE + ERROR),
        (b"set a 0 0 2147483648\r\n", BAD_LINE),
        (b"set a 01 00 01\r\n1\r\n", STORED),
        (b"get a\r\n", value(b"a", b"1", 1) + END),
        (b"touch a x\r\n", BAD_EXPTIME),
        (b"gat x a\r\n", BAD_EXPTIME),
        (b"flush_all x\r\n", BAD_EXPTIME),
        (b"verbosity x\r\n", BAD_LINE),
    ],
    "Storage commands: bad data chunks": [
        (b"set a 0 0 3\r\nabcdefg\r\n", BAD_CHUNK + ERROR),
        (b"set a 0 0 3\r\nab\r\n1234\r\n", BAD_CHUNK + ERROR),
        (b"get a\r\n", END),
    ],
    "Storage commands: add and replace": [
        (store(b"0", verb=b"replace"), b"NOT_STORED\r\n"),
        (store(b"1", verb=b"add"), STORED),
        (store(b"2", verb=b"add"), b"NOT_STORED\r\n"),
        (store(b"3", verb=b"replace", flags=3), STORED),
        (b"get a\r\n", value(b"a", b"3", 3) + END),
    ],
    "Storage commands: append and prepend": [
        (store(b"1", verb=b"append"), b"NOT_STORED\r\n"),
        (store(b"1", verb=b"prepend"), b"NOT_STORED\r\n"),
        (store(b"1", flags=7), STORED),
        (store(b"2", verb=b"append", flags=9, exptime=-1), STORED),
        (store(b"0", verb=b"prepend", flags=9, exptime=-1), STORED),
        (b"get a\r\n", value(b"a", b"012", 7) + END),
        (store(b"", verb=b"append"), STORED),
        (b"get a\r\n", value(b"a", b"012", 7) + END),
    ],
    "Storage commands: cas": [
        (store(b"1", verb=b"cas", rest=b" 1"), b"NOT_FOUND\r\n"),
        (store(b"1"), STORED),
        (store(b"1", verb=b"cas", rest=b" 9999999999"), b"EXISTS\r\n"),
        (store(b"1", verb=b"cas", rest=b" 9999999999 noreply"), b""),
        (b"get a\r\n", value(b"a", b"1") + END),
    ],
    "Deletion: delete": [
        (b"delete a\r\n", b"NOT_FOUND\r\n"),
        (store(b"1"), STORED),
        (b"delete a\r\n", b"DELETED\r\n"),
        (b"delete a\r\n", b"NOT_FOUND\r\n"),
        (store(b"1"), STORED),
        (b"delete a 0\r\n", b"DELETED\r\n"),
        (store(b"1"), STORED),
        (b"delete a 0 noreply\r\n", b""),
        (b"get a\r\n", END),
    ],
    "Increment/Decrement: increment": [
        (b"incr a 1\r\n", b"NOT_FOUND\r\n"),
        (store(b"9", flags=5), STORED),
        (b"incr a 1\r\n", b"10\r\n"),
        (b"get a\r\n", value(b"a", b"10", 5) + END),
        (b"incr a 0\r\n", b"10\r\n"),
        (b"incr a x\r\n", BAD_DELTA),
        (b"incr a -1\r\n", BAD_DELTA),
        (b"incr a 18446744073709551616\r\n", BAD_DELTA),
        (b"incr a 18446744073709551615\r\n", b"9\r\n"),
    ],
    "Increment/Decrement: decrement": [
        (b"decr a 1\r\n", b"NOT_FOUND\r\n"),
        (store(b"100"), STORED),
        (b"decr a 1\r\n", b"99\r\n"),
        (b"get a\r\n", value(b"a", b"99 ") + END),
        (b"decr a 100\r\n", b"0\r\n"),
        (b"get a\r\n", value(b"a", b"0  ") + END),
        (b"incr a 100\r\n", b"100\r\n"),
        (b"get a\r\n", value(b"a", b"100") + END),
        (b"decr a x\r\n", BAD_DELTA),
    ],
    "Increment/Decrement: numbers that are none": [
        (store(b"abc"), STORED),
        (b"incr a 1\r\n", NOT_A_NUMBER),
        (b"decr a 1\r\n", NOT_A_NUMBER),
        (store(b""), STORED),
        (b"incr a 1\r\n", NOT_A_NUMBER),
        (store(b"-5"), STORED),
        (b"incr a 1\r\n", NOT_A_NUMBER),
        (store(b"18446744073709551616"), STORED),
        (b"incr a 1\r\n", NOT_A_NUMBER),
    ],
    "Touch: touch": [
        (b"touch a 0\r\n", b"NOT_FOUND\r\n"),
        (store(b"1"), STORED),
        (b"touch a 100\r\n", b"TOUCHED\r\n"),
        (b"get a\r\n", value(b"a", b"1") + END),
        (b"touch a -1\r\n", b"TOUCHED\r\n"),
        (b"get a\r\n", END),
    ],
    "Get And Touch: get and touch": [
        (store(b"1", flags=3), STORED),
        (b"gat 100 a nope\r\n", value(b"a", b"1", 3) + END),
        (b"gat 0 nope\r\n", END),
        (b"gat -1 a\r\n", value(b"a", b"1", 3) + END),
        (b"get a\r\n", END),
    ],
    "Expiration times: expiry times": [
        (store(b"1", exptime=-1), STORED),
        (b"get a\r\n", END),
        (store(b"1", exptime=1), STORED),
        (b"get a\r\n", value(b"a", b"1") + END),
        (store(b"1", exptime=2592000), STORED),
        (b"get a\r\n", value(b"a", b"1") + END),
        (store(b"1", exptime=2592001), STORED),
        (b"get a\r\n", END),
        (store(b"1", exptime=2000000000), STORED),
        (b"get a\r\n", value(b"a", b"1") + END),
    ],
    "Commands: noreply": [
        (store(b"1", rest=b" noreply"), b""),
        (store(b"2", verb=b"add", rest=b" noreply"), b""),
        (store(b"2", verb=b"replace", rest=b" noreply"), b""),
        (store(b"3", verb=b"append", rest=b" noreply"), b""),
        (store(b"1", verb=b"prepend", rest=b" noreply"), b""),
        (b"incr a 1 noreply\r\n", b""),
        (b"decr a 2 noreply\r\n", b""),
        (b"touch a 100 noreply\r\n", b""),
        (b"get a\r\n", value(b"a", b"122") + END),
        (b"delete a noreply\r\n", b""),
        (b"get a\r\n", END),
        (b"verbosity 0 noreply\r\n", b""),
        (b"flush_all noreply\r\n", b""),
        (b"flush_all 0 noreply\r\n", b""),
    ],
    "Other commands: verbosity": [
        (b"verbosity 1\r\n", b"OK\r\n"),
        (b"verbosity 0\r\n", b"OK\r\n"),
    ],
    "Other commands: flush": [
        (store(b"1"), STORED),
        (b"flush_all 0\r\n", b"OK\r\n"),
        (b"get a\r\n", END),
        (store(b"2", verb=b"add"), STORED),
        (b"get a\r\n", value(b"a", b"2") + END),
        (b"flush_all -1\r\n", b"OK\r\n"),
    ],
    "Error strings: too large": [
        (store(b"old"), STORED),
        (store(bytes(2_000_000)), b"SERVER_ERROR object too large for cache\r\n"),
        (b"get a\r\n", END),
        (store(b"old"), STORED),
        (store(bytes(2_000_000), rest=b" noreply"), b""),
        (b"get a\r\n", END),
    ],
    "Statistics: stats": [
        (b"stats reset\r\n", b"RESET\r\n"),
        (b"stats nonsense\r\n", ERROR),
    ],
}

# Where memcached's newer parsers differ from those of 1.6.18.
NEWER_TRANSCRIPTS = {
    # After a number of 2^63 or more, 1.6.18 looks for a sign in the following bytes.
    "Increment/Decrement: increment wraps at 64 bits": [
        (store(b"18446744073709551615"), STORED),
        (b"incr a 1\r\n", b"0\r\n"),
        (b"get a\r\n", value(b"a", b"0".ljust(20)) + END),
    ],
    "Error strings: lines shorter than any command": [(line, BAD_LINE) for line in (b"\r\n", b" \r\n", b"g\r\n", b"mn\n")],
    "Error strings: too few words": [
        (line + b"\r\n", BAD_LINE)
        for line in (
            b"get",
            b"get ",
            b"gets",
            b"gat",
            b"gat 0",
            b"set",
            b"set a",
            b"set a 0 0",
            b"delete",
            b"incr",
            b"incr a",
            b"touch",
            b"touch a",
            b"verbosity",
        )
    ],
    "Commands: more words than mean something": [
        (b"set a 0 0 1 noreply x\r\n1\r\n", STORED),
        (b"incr a 1 2 3\r\n", b"2\r\n"),
        (b"touch a 0 1 2 noreply\r\n", b""),
        (b"delete a 5\r\n", b"DELETED\r\n"),
        (b"flush_all 0 2 3\r\n", b"OK\r\n"),
        (b"verbosity 0 1 2\r\n", b"OK\r\n"),
    ],
    "Commands: spaces in front": [
        (b" get a\r\n", ERROR),
        (b" verbosity 0\r\n", b"OK\r\n"),
    ],
    "Commands: a zero byte is a byte": [
        (store(b"1", b"a\0b"), STORED),
        (b"get a\0b\r\n", value(b"a\0b", b"1") + END),
        (b"get a\r\n", END),
    ],
    "Storage commands: a refused value is swallowed": [
        (b"set a -1 0 1\r\n1\r\n", BAD_LINE),
        (b"set a 0 x 1\r\n1\r\n", BAD_LINE),
        (b"set a 0 99999999999999999999 1\r\n1\r\n", BAD_LINE),
        (b"set a 0x1 0 1\r\n1\r\n", BAD_LINE),
        (b"set a 1 1x 1\r\n1\r\n", BAD_LINE),
        (b"cas a 0 0 1\r\n1\r\n", BAD_LINE),
        (b"cas a 0 0 1 x\r\n1\r\n", BAD_LINE),
        (b"cas a 0 0 1 -1\r\n1\r\n", BAD_LINE),
        (b"cas a 0 0 1 18446744073709551616\r\n1\r\n", BAD_LINE),
        (store(b"1", LONG_KEY), BAD_LINE),
        (b"set a x 0 1 noreply\r\n1\r\n", b""),
        (b"get a\r\n", END),
    ],
    "Commands: numbers are digits": [
        (store(b"1"), STORED),
        (b"incr a +1\r\n", BAD_DELTA),
        (b"incr a 1\t\r\n", BAD_DELTA),
        (b"touch a 2147483648\r\n", BAD_EXPTIME),
        (b"gat +1 a\r\n", BAD_EXPTIME),
        (b"flush_all +1\r\n", BAD_EXPTIME),
        (b"verbosity 4294967296\r\n", BAD_LINE),
        (b"set a 0 0 +1\r\n12\r\n", BAD_LINE + ERROR),
        (b"set a 0 0 -1 noreply\r\n12\r\n", BAD_LINE + ERROR),
        (b"get a\r\n", value(b"a", b"1") + END),
    ],
    "Error strings: unknown commands and noreply": [(b"foo noreply\r\n", b""), (b"bget a\r\n", ERROR)],
}

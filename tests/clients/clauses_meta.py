"""The meta commands, clause by clause. Clauses are headings of memcached's protocol.txt, and below them the flags it lists.

What a row expects was taken from memcached 1.6.18 and 1.6.45; where they differ, the row expects what 1.6.45 does and says so.
"""

from conformance import NEWEST, rows
from meta import *  # noqa: F403

META_COMMANDS = rows(
    "Meta Commands",
    {
        "spaces between words": [STORE, (b"mg  a  v  t\r\n", va(b"x", b"t-1")), (b"mg a \r\n", HD)],
        "flags come back in the order of the request": [
            (ms(b"a", b"xy", b"F5 T100"), HD),
            (b"mg a f t s k\r\n", b"HD f5 t100 s2 ka\r\n"),
            (b"mg a k s t f v\r\n", va(b"xy", b"ka s2 t100 f5")),
        ],
        "P and L are ignored with their arguments": [
            STORE,
            (b"mg a v Pabc/ Lx\r\n", va(b"x")),
            (ms(b"a", b"y", b"Pabc/ L"), HD),
            (b"md a P L\r\n", HD),
        ],
        "a flag twice": [
            STORE,
            (b"mg a v v\r\n", DUPLICATE),
            (b"mg a k k\r\n", DUPLICATE),
            (b"mg a P Pabc\r\n", DUPLICATE),
            (b"mg a O1 O2\r\n", DUPLICATE),
            (ms(b"a", b"y", b"MS MR"), DUPLICATE),
        ],
        "only a flag's first character counts": [STORE, (b"mg a vv\r\n", va(b"x"))],
        "unknown flags": [
            STORE,
            (b"mg a z\r\n", INVALID),
            (b"ma a z\r\n", INVALID_OR_DUPLICATE),
        ],
        "mixed with other commands": [
            (b"set a 7 0 1\r\nx\r\n", b"STORED\r\n"),
            (b"mg a f v\r\n", va(b"x", b"f7")),
            (ms(b"a", b"y", b"F8"), HD),
            (b"get a\r\n", b"VALUE a 8 1\r\ny\r\nEND\r\n"),
            (b"md a\r\n", HD),
            (b"get a\r\n", b"END\r\n"),
        ],
        "unknown commands": [(b"mx a\r\n", b"ERROR\r\n"), (b"mgg a\r\n", b"ERROR\r\n")],
        "keys that are too long": [
            (b"mg " + LONG_KEY + b" v\r\n", BAD_LINE),
            (b"md " + LONG_KEY + b"\r\n", BAD_LINE),
            (ms(b"k" * 250, b"x"), HD),
            (b"mg " + b"k" * 250 + b" v\r\n", va(b"x")),
        ],
        "pipelined": [
            (
                ms(b"a", b"1") + b"mg a v\r\n" + ms(b"a", b"2") + b"mg a v\r\nmg b v\r\nmd a\r\nmg a v\r\n",
                HD + va(b"1") + HD + va(b"2") + EN + HD + EN,
            ),
        ],
    },
) + rows(
    "Meta Commands",
    {
        "no key (1.6.18 answers ERROR)": [(b"ms a\r\n", BAD_LINE), (b"md\r\n", BAD_LINE), (b"ma\r\n", BAD_LINE)],
        "an unknown flag of md (1.6.18: invalid or duplicate flag)": [STORE, (b"md a z\r\n", INVALID)],
    },
    since=NEWEST,
)

META_NO_OP = rows("Meta No-Op", {"answered in its place": [(b"mn\r\nmg a v\r\nmn\r\n", b"MN\r\n" + EN + b"MN\r\n")]})

META_DEBUG = rows(
    "Meta Debug",
    {
        "a miss": [(b"me a\r\n", EN)],
        "no key": [(b"me\r\n", BAD_LINE)],
        "what is known of an item": [
            (ms(b"a", b"x", b"c"), b"HD c%{cas}\r\n"),
            (b"me a\r\n", b"ME a exp=-1 la=0 cas=%{cas} fetch=no cls=%{class} size=%{_size}\r\n"),
            (b"mg a\r\n", HD),
            (b"me a\r\n", b"ME a exp=-1 la=0 cas=%{cas} fetch=yes cls=%{class} size=%{_size}\r\n"),
        ],
    },
) + rows(
    "Meta Debug",
    {
        "exp is what remains (1.6.18 shows it negative)": [
            (ms(b"a", b"x", b"T500"), HD),
            (b"me a\r\n", b"ME a exp=500 la=0 cas=%{_cas} fetch=no cls=%{_class} size=%{_size}\r\n"),
        ],
    },
    since=NEWEST,
)

META_GET = (
    rows(
        "Meta Get",
        {
            "hit without and with the value": [STORE, (b"mg a\r\n", HD), (b"mg a v\r\n", va(b"x"))],
            "a miss": [(b"mg a\r\n", EN), (b"mg a v\r\n", EN)],
            "an empty value": [(ms(b"a", b""), HD), (b"mg a v s\r\n", va(b"", b"s0"))],
            "a value that looks like a reply": [(ms(b"a", b"\r\nEN\r\n"), HD), (b"mg a v\r\n", va(b"\r\nEN\r\n"))],
            "a miss gives back the key and the opaque alone": [
                (b"mg b k O12 v f s t\r\n", b"EN kb O12\r\n"),
                (b"mg a k O\r\n", b"EN ka O\r\n"),
            ],
        },
    )
    + rows(
        "Meta Get, b: interpret key as base64 encoded binary value",
        {
            "stored and fetched": [
                (ms(b"AAEC/w==", b"x", b"b"), HD),
                (b"mg AAEC/w== b v k\r\n", va(b"x", b"kAAEC/w== b")),
                (b"md AAEC/w== b k O1\r\n", b"HD kAAEC/w== b O1\r\n"),
                (b"mg AAEC/w== b v\r\n", EN),
            ],
            "the item is marked, however it was named": [
                (ms(b"Zm9v", b"hi", b"b"), HD),
                (b"mg foo v k\r\n", va(b"hi", b"kZm9v b")),
                (b"get foo\r\n", b"VALUE foo 0 2\r\nhi\r\nEND\r\n"),
            ],
            "what is no base64": [
                (b"mg Zm9 b v\r\n", BAD_KEY),
                (ms(b"==", b"x", b"b"), BAD_KEY),
                (ms(b"a", b"x", b"b c k"), BAD_KEY),
            ],
        },
    )
    + rows(
        "Meta Get, c: return item cas token",
        {
            "changes with every store and with nothing else": [
                (ms(b"a", b"x", b"c"), b"HD c%{first}\r\n"),
                (b"mg a c\r\n", b"HD c%{first}\r\n"),
                (b"mg a T100 c\r\n", b"HD c%{first}\r\n"),
                (b"gets a\r\n", b"VALUE a 0 1 %{first}\r\nx\r\nEND\r\n"),
                (ms(b"a", b"x"), HD),
                (b"mg a c\r\n", b"HD c%{second}\r\n"),
                (ms(b"a", b"x", b"C%{first}"), EX),
                (ms(b"a", b"x", b"C%{second}"), HD),
            ],
        },
    )
    + rows(
        "Meta Get, f: return client flags token",
        {
            "0 unless set": [STORE, (b"mg a f\r\n", b"HD f0\r\n")],
            "up to 32 bits": [(ms(b"a", b"x", b"F4294967295"), HD), (b"mg a f v\r\n", va(b"x", b"f4294967295"))],
        },
    )
    + rows(
        "Meta Get, h and l: the item before this command",
        {
            "hit before, and after": [STORE, (b"mg a h\r\n", b"HD h0\r\n"), (b"mg a h l\r\n", b"HD h1 l0\r\n")],
            "a store makes it new": [
                STORE,
                (b"mg a\r\n", HD),
                (b"mg a h\r\n", b"HD h1\r\n"),
                STORE,
                (b"mg a h\r\n", b"HD h0\r\n"),
            ],
            "a get counts": [STORE, (b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n"), (b"mg a h\r\n", b"HD h1\r\n")],
        },
    )
    + rows(
        "Meta Get, O: opaque value",
        {
            "comes back": [STORE, (b"mg a O1234 v\r\n", va(b"x", b"O1234")), (b"mg b Ox-y\r\n", b"EN Ox-y\r\n")],
            "up to 31 bytes behind the O": [
                (b"mg a O" + b"o" * 31 + b"\r\n", b"EN O" + b"o" * 31 + b"\r\n"),
                (b"mg a O" + b"o" * 32 + b"\r\n", LONG_OPAQUE),
                (ms(b"a", b"x", b"O" + b"o" * 32), LONG_OPAQUE),
            ],
        },
    )
    + rows(
        "Meta Get, q: noreply semantics",
        {
            "hides a miss, not a hit": [
                STORE,
                (b"mg b v q\r\n", b""),
                (b"mg b k O1 q\r\n", b""),
                (b"mg a v q\r\n", va(b"x")),
                (b"mg a k Oq q\r\n", b"HD ka Oq\r\n"),
            ],
            "does not hide an error": [STORE, (b"mg a q z\r\n", INVALID)],
        },
    )
    + rows(
        "Meta Get, s: return item size token",
        {"bytes of the value": [(ms(b"a", b"12345"), HD), (b"mg a s\r\n", b"HD s5\r\n")]},
    )
    + rows(
        "Meta Get, t: return item TTL remaining in seconds",
        {
            "-1 for unlimited": [STORE, (b"mg a t\r\n", b"HD t-1\r\n")],
            "seconds": [(ms(b"a", b"x", b"T1000"), HD), (b"mg a t\r\n", b"HD t1000\r\n")],
        },
    )
    + rows(
        "Meta Get, u: don't bump the item in the LRU",
        {"nor mark it as hit": [STORE, (b"mg a u h\r\n", b"HD h0\r\n"), (b"mg a h\r\n", b"HD h0\r\n")]},
    )
    + rows(
        "Meta Get, N: vivify on miss",
        {
            "the first wins, the next are told": [
                (b"mg a N30 t v\r\n", va(b"", b"t30 W")),
                (b"mg a N30 t v\r\n", va(b"", b"t30 Z")),
                (b"mg a t v f k O1\r\n", va(b"", b"t30 f0 ka O1 Z")),
                (ms(b"a", b"hi", b"T50"), HD),
                (b"mg a t v\r\n", va(b"hi", b"t50")),
            ],
            "is no miss to q": [(b"mg a N0 t v k q O1\r\n", va(b"", b"t-1 ka O1 W"))],
            "a token that is no number": [(b"mg a Nx\r\n", BAD_TOKEN), (b"mg a N\r\n", BAD_TOKEN)],
        },
    )
    + rows(
        "Meta Get, R: win for recache",
        {
            "when less remains": [
                (ms(b"a", b"hi", b"T50"), HD),
                (b"mg a R30 t v\r\n", va(b"hi", b"t50")),
                (b"mg a R60 t v\r\n", va(b"hi", b"t50 W")),
                (b"mg a R60 t v\r\n", va(b"hi", b"t50 Z")),
                (b"mg a R30 t v\r\n", va(b"hi", b"t50 Z")),
                (ms(b"a", b"new", b"T50"), HD),
                (b"mg a R60 v\r\n", va(b"new", b"W")),
            ],
            "never when nothing expires": [STORE, (b"mg a R60 v\r\n", va(b"x"))],
        },
    )
    + rows(
        "Meta Get, T: update remaining TTL",
        {
            "flag by flag, in the order of the request": [
                STORE,
                (b"mg a t T100\r\n", b"HD t-1\r\n"),
                (b"mg a T200 t\r\n", b"HD t200\r\n"),
                (b"mg a T0 t\r\n", b"HD t-1\r\n"),
                (b"mg a T-1\r\n", HD),
                (b"mg a\r\n", EN),
            ],
            "a token that is no number": [STORE, (b"mg a Tx\r\n", BAD_TOKEN), (b"mg a T\r\n", BAD_TOKEN)],
        },
    )
    + rows(
        "Meta Get, C: check CAS value against item, remove 'v' flag if matches",
        {
            "sends no value if it matches": [
                (ms(b"a", b"x", b"E50"), HD),
                (b"mg a C50 v c\r\n", b"HD c50\r\n"),
                (b"mg a C51 v c\r\n", va(b"x", b"c50")),
                (b"mg a C50 c\r\n", b"HD c50\r\n"),
                (b"mg a Cx v\r\n", BAD_TOKEN),
            ],
        },
        since=NEWEST,
    )
    + rows(
        "Meta Get, E: use token as new CAS value if item is modified",
        {"on a miss with N": [(b"mg a E100 N10 c\r\n", b"HD c100 W\r\n"), (b"mg a c\r\n", b"HD c100 Z\r\n")]},
        since=NEWEST,
    )
)

META_READS = META_COMMANDS + META_NO_OP + META_DEBUG + META_GET

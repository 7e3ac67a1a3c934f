"""The meta commands that write, clause by clause, as in clauses_meta.py."""

from conformance import NEWEST, rows
from meta import *  # noqa: F403

META_SET = (
    rows(
        "Meta Set",
        {
            "stored": [(ms(b"a", b"xy"), HD), (b"mg a v\r\n", va(b"xy"))],
            "lengths that are none": [(b"ms a\r\n", BAD_LINE), (b"ms a x\r\n", BAD_LINE), (b"ms a -1\r\n", BAD_LINE)],
            "flags that are wrong swallow the value": [
                (ms(b"a", b"mn", b"z"), INVALID),
                (ms(b"a", b"mn", b"T"), BAD_TOKEN),
                (ms(b"a", b"mn", b"Tx"), BAD_TOKEN),
                (ms(b"a", b"mn", b"C"), BAD_TOKEN),
                (b"mg a v\r\n", EN),
            ],
            "the reply has what was asked for": [
                (ms(b"a", b"x", b"k O11"), b"HD ka O11\r\n"),
                (ms(b"a", b"x", b"O11 k b"), BAD_KEY),
                (ms(b"a", b"x", b"k c O3"), b"HD ka c%{_cas} O3\r\n"),
            ],
            "a value of another length": [(b"ms a 2\r\nab-word\r\n", BAD_CHUNK + b"ERROR\r\n")],
        },
    )
    + rows(
        "Meta Set, C: compare CAS value when storing item",
        {
            "not there": [(ms(b"a", b"x", b"C1"), NF)],
            "another": [STORE, (ms(b"a", b"y", b"C99999999"), EX), (b"mg a v\r\n", va(b"x"))],
            "the very same": [
                (ms(b"a", b"x", b"c"), b"HD c%{cas}\r\n"),
                (ms(b"a", b"y", b"C%{cas}"), HD),
                (ms(b"a", b"z", b"C%{cas}"), EX),
                (b"mg a v\r\n", va(b"y")),
            ],
            "q does not hide EX": [STORE, (ms(b"a", b"y", b"C99999999 q k"), b"EX ka\r\n")],
        },
    )
    + rows(
        "Meta Set, F: set client flags to token",
        {
            "numbers of 32 bits": [
                (ms(b"a", b"x", b"F7"), HD),
                (b"get a\r\n", b"VALUE a 7 1\r\nx\r\nEND\r\n"),
                (ms(b"a", b"x", b"F-1"), BAD_LINE),
                (ms(b"a", b"x", b"Fx"), BAD_LINE),
                (ms(b"a", b"x", b"F"), BAD_LINE),
            ],
        },
    )
    + rows(
        "Meta Set, I: set-to-invalid if supplied CAS is older than item's CAS",
        {
            "stored as stale": [
                STORE,
                (ms(b"a", b"y", b"I C1"), HD),
                (b"mg a v\r\n", va(b"y", b"X W")),
                (b"mg a v\r\n", va(b"y", b"Z X")),
                (b"mg a s\r\n", b"HD s1 Z X\r\n"),
                (b"get a\r\n", b"VALUE a 0 1\r\ny\r\nEND\r\n"),
            ],
            "not if it is newer": [STORE, (ms(b"a", b"y", b"I C99999999"), EX)],
        },
    )
    + rows(
        "Meta Set, q: noreply semantics",
        {
            "hides success": [
                (ms(b"a", b"x", b"q"), b""),
                (b"mg a v\r\n", va(b"x")),
                (ms(b"a", b"y", b"k O11 q"), b""),
                (ms(b"b", b"x", b"MR q k O1"), b"NS kb O1\r\n"),
            ],
        },
    )
    + rows(
        "Meta Set, T: Time-To-Live",
        {
            "seconds, or never": [
                (ms(b"a", b"x", b"T100"), HD),
                (b"mg a t\r\n", b"HD t100\r\n"),
                (ms(b"a", b"x", b"T0"), HD),
                (b"mg a t\r\n", b"HD t-1\r\n"),
                (ms(b"a", b"x", b"T-1"), HD),
                (b"mg a v\r\n", EN),
            ],
        },
    )
    + rows(
        "Meta Set, M: mode switch",
        {
            "E adds": [(ms(b"a", b"x", b"ME"), HD), (ms(b"a", b"y", b"ME"), NS), (b"mg a v\r\n", va(b"x"))],
            "A appends": [(ms(b"a", b"x", b"MA"), NS), STORE, (ms(b"a", b"y", b"MA"), HD), (b"mg a v\r\n", va(b"xy"))],
            "P prepends": [(ms(b"a", b"x", b"MP"), NS), STORE, (ms(b"a", b"y", b"MP"), HD), (b"mg a v\r\n", va(b"yx"))],
            "R replaces": [(ms(b"a", b"x", b"MR"), NS), STORE, (ms(b"a", b"y", b"MR"), HD), (b"mg a v\r\n", va(b"y"))],
            "S sets": [(ms(b"a", b"x", b"MS"), HD)],
            "lower case": [
                (ms(b"a", b"1", b"me"), INVALID),
            ],
            "no other": [
                (ms(b"a", b"x", b"Mx"), b"CLIENT_ERROR invalid mode for ms M token\r\n"),
                (ms(b"a", b"x", b"Me"), b"CLIENT_ERROR invalid mode for ms M token\r\n"),
            ],
            "append keeps flags and expiry": [
                (ms(b"a", b"x", b"F5 T100"), HD),
                (ms(b"a", b"y", b"MA F6 T200"), HD),
                (b"mg a f t v\r\n", va(b"xy", b"f5 t100")),
            ],
            "append respects C": [
                (ms(b"a", b"x", b"c"), b"HD c%{cas}\r\n"),
                (ms(b"a", b"y", b"MA C%{cas}"), HD),
                (ms(b"a", b"z", b"MA C%{cas}"), EX),
                (b"mg a v\r\n", va(b"xy")),
            ],
        },
    )
    + rows(
        "Meta Set, N: if in append mode, autovivify on miss with supplied TTL",
        {"seeded with the data": [(ms(b"a", b"q", b"MA N100"), HD), (b"mg a v t\r\n", va(b"q", b"t100"))]},
        since=NEWEST,
    )
    + rows(
        "Meta Set, E: use token as new CAS value",
        {
            "returned and compared": [
                (ms(b"a", b"x", b"E777 c"), b"HD c777\r\n"),
                (b"mg a c\r\n", b"HD c777\r\n"),
                (ms(b"a", b"y", b"C777 E778"), HD),
                (b"mg a c v\r\n", va(b"y", b"c778")),
                (b"md a C778\r\n", HD),
            ],
        },
        since=NEWEST,
    )
    + rows(
        "Meta Set, s: return the size of the stored item on success",
        {"the new size on append": [(ms(b"a", b"xyz", b"s"), b"HD s3\r\n"), (ms(b"a", b"xy", b"MA s"), b"HD s5\r\n")]},
        since=NEWEST,
    )
)

META_DELETE = (
    rows(
        "Meta Delete",
        {
            "there or not": [(b"md a\r\n", NF), STORE, (b"md a k O33\r\n", b"HD ka O33\r\n"), (b"mg a\r\n", EN)],
            "other commands' flags": [STORE, (b"md a T30\r\n", HD), (b"mg a\r\n", EN)],
        },
    )
    + rows(
        "Meta Delete, C: compare CAS value",
        {
            "another": [
                STORE,
                (b"md a C99999999\r\n", EX),
                (b"md a C99999999 q k O1\r\n", b"EX ka O1\r\n"),
                (b"mg a\r\n", HD),
            ],
            "the very same": [(ms(b"a", b"x", b"c"), b"HD c%{cas}\r\n"), (b"md a C%{cas}\r\n", HD), (b"mg a\r\n", EN)],
        },
    )
    + rows(
        "Meta Delete, I: invalidate. mark as stale, bumps CAS",
        {
            "one client wins": [
                (ms(b"a", b"x", b"c"), b"HD c%{before}\r\n"),
                (b"md a I T30\r\n", HD),
                (b"mg a t v\r\n", va(b"x", b"t30 X W")),
                (b"mg a t v\r\n", va(b"x", b"t30 Z X")),
                (ms(b"a", b"y", b"C%{before}"), EX),
                (ms(b"a", b"y"), HD),
                (b"mg a v\r\n", va(b"y")),
            ],
            "not there": [(b"md a I\r\n", NF)],
            "T only with I": [STORE, (b"md a I\r\n", HD), (b"mg a t\r\n", b"HD t-1 X W\r\n")],
            "the winner's store makes it fresh": [
                STORE,
                (b"md a I\r\n", HD),
                (b"mg a c v\r\n", va(b"x", b"c%{cas} X W")),
                (ms(b"a", b"new", b"C%{cas}"), HD),
                (b"mg a v\r\n", va(b"new")),
            ],
        },
    )
    + rows(
        "Meta Delete, q: noreply",
        {"hides success": [STORE, (b"md a q\r\n", b""), (b"mg a\r\n", EN)]},
    )
    + rows(
        "Meta Delete, x: removes the item value, but leaves the item",
        {
            "client flags go too": [
                (ms(b"a", b"abc", b"F9"), HD),
                (b"md a x\r\n", HD),
                (b"mg a v f s\r\n", va(b"", b"f0 s0")),
            ],
            "a tombstone with I, T and E": [
                (ms(b"a", b"abc", b"F9 E5"), HD),
                (b"md a I x T10 E9\r\n", HD),
                (b"mg a v f c t\r\n", va(b"", b"f0 c9 t10 X W")),
            ],
        },
        since=NEWEST,
    )
)

META_ARITHMETIC = (
    rows(
        "Meta Arithmetic",
        {
            "by one": [(b"ma a\r\n", NF), (ms(b"a", b"5"), HD), (b"ma a\r\n", HD), (b"ma a v\r\n", va(b"7"))],
            "no number": [(ms(b"a", b"abc"), HD), (b"ma a\r\n", NOT_A_NUMBER)],
            "never below 0, and around at 64 bits": [
                (ms(b"a", b"16"), HD),
                (b"ma a MD D100 v\r\n", va(b"0")),
                (b"mg a v\r\n", va(b"0 ")),
                (ms(b"a", b"2"), HD),
                (b"ma a D18446744073709551615 v\r\n", va(b"1")),
            ],
        },
    )
    + rows(
        "Meta Arithmetic, C: compare CAS value",
        {
            "another": [(ms(b"a", b"5"), HD), (b"ma a C99999999\r\n", EX)],
            "the very same": [
                (ms(b"a", b"5", b"c"), b"HD c%{cas}\r\n"),
                (b"ma a C%{cas} c v\r\n", va(b"6", b"c%{next}")),
                (b"ma a C%{cas}\r\n", EX),
                (b"ma a C%{next} v\r\n", va(b"7")),
            ],
        },
    )
    + rows(
        "Meta Arithmetic, D: delta to apply",
        {
            "64 bits": [
                (ms(b"a", b"7"), HD),
                (b"ma a v D10\r\n", va(b"17")),
                (b"ma a Dx\r\n", INVALID_OR_DUPLICATE),
                (b"ma a D-1\r\n", INVALID_OR_DUPLICATE),
                (b"ma a D18446744073709551616\r\n", INVALID_OR_DUPLICATE),
            ],
        },
    )
    + rows(
        "Meta Arithmetic, M: mode switch",
        {
            "I, +, D and -": [
                (ms(b"a", b"5"), HD),
                (b"ma a MI v\r\n", va(b"6")),
                (b"ma a M+ v\r\n", va(b"7")),
                (b"ma a MD v\r\n", va(b"6")),
                (b"ma a M- v\r\n", va(b"5")),
                (b"ma a MX v\r\n", b"CLIENT_ERROR invalid mode for ma M token\r\n"),
            ],
        },
    )
    + rows(
        "Meta Arithmetic, N and J: auto create item on miss",
        {
            "the first value is the initial one": [
                (b"ma a N0 J13 v\r\n", va(b"13")),
                (b"ma a N0 J13 v\r\n", va(b"14")),
                (b"ma b N90 v t\r\n", va(b"0", b"t90")),
            ],
            "tokens that are no numbers": [
                (b"ma a N\r\n", INVALID_OR_DUPLICATE),
                (b"ma a N0 Jx\r\n", INVALID_OR_DUPLICATE),
                (b"ma a N0 J\r\n", INVALID_OR_DUPLICATE),
                (b"mg a\r\n", EN),
            ],
        },
    )
    + rows(
        "Meta Arithmetic, q: noreply semantics",
        {
            "hides success": [
                (ms(b"a", b"5"), HD),
                (b"ma a k O9 q\r\n", b""),
                (b"mg a v\r\n", va(b"6")),
            ],
            "does not hide a miss": [(b"ma a q k O1\r\n", b"NF ka O1\r\n")],
        },
    )
    + rows(
        "Meta Arithmetic, T and t: TTL",
        {
            "updated on success, then told": [
                (ms(b"a", b"5", b"T90"), HD),
                (b"ma a t v\r\n", va(b"6", b"t90")),
                (b"ma a T20 t v\r\n", va(b"7", b"t20")),
            ]
        },
    )
    + rows(
        "Meta Arithmetic, E: use token as new CAS value",
        {"on success": [(ms(b"a", b"5"), HD), (b"ma a E100 c\r\n", b"HD c100\r\n"), (b"mg a c\r\n", b"HD c100\r\n")]},
        since=NEWEST,
    )
)

META_WRITES = META_SET + META_DELETE + META_ARITHMETIC

"""Generates meta commands, and classic ones on the same items: valid, borderline and malformed ones, each with its whole value."""

import base64

KEYS = [b"a", b"a", b"b", b"c", b"Zm9v", b"foo", b"AAEC/w=="]
NUMBERS = [b"0", b"0", b"1", b"5", b"100", b"1000", b"18446744073709551615", b"18446744073709551616", b"-1", b"x", b""]
EXPTIMES = [b"0", b"0", b"1000", b"100000", b"-1", b"3000000", b"x", b""]
# For created items: memcached 1.6 keeps one that has already expired, and shows its remaining time as a huge number.
TTLS = [exptime for exptime in EXPTIMES if exptime not in (b"-1", b"3000000")]
UNIQUES = [b"%{unique}", b"%{unique}", b"%{unique}", b"99999999", b"x", b""]
OPAQUES = [b"", b"1", b"opaque", b"o" * 31, b"o" * 32]
VALUES = [b"", b"1", b"5", b"99", b"18446744073709551615", b"word", b"mn\r\nmn", b"12 ", b"x" * 300]
PLAIN = {
    b"mg": b"bcfhklqstuv",
    b"ms": b"bcIkqs",
    b"md": b"bIkqx",
    b"ma": b"bckqtv",
}
WITH_TOKEN = {
    b"mg": {b"O": OPAQUES, b"N": TTLS, b"R": [b"30", b"2000", b"x"], b"T": EXPTIMES, b"C": UNIQUES, b"E": [b"77"]},
    b"ms": {
        b"C": UNIQUES,
        b"F": [b"0", b"7", b"4294967295", b"-1", b"x", b""],
        b"O": OPAQUES,
        b"T": EXPTIMES,
        b"M": [b"S", b"E", b"A", b"P", b"R", b"s", b"x"],
        b"E": [b"77"],
        b"N": TTLS,
    },
    b"md": {b"C": UNIQUES, b"O": OPAQUES, b"T": EXPTIMES, b"E": [b"77"]},
    b"ma": {
        b"C": UNIQUES,
        b"N": TTLS,
        b"J": NUMBERS,
        b"D": NUMBERS,
        b"T": TTLS,
        b"M": [b"I", b"D", b"+", b"-", b"x"],
        b"O": OPAQUES,
        b"E": [b"77"],
    },
}
# Flags that memcached 1.6.18 does not know.
NEWER = {
    (b"mg", b"C"),
    (b"mg", b"E"),
    (b"ms", b"E"),
    (b"ms", b"N"),
    (b"ms", b"s"),
    (b"md", b"E"),
    (b"md", b"x"),
    (b"ma", b"E"),
}
ODD = [b"z", b"P", b"Lpath/", b"S5"]


def key_of(request):
    """The key of a request, whose CAS unique may be a name."""
    words = request.split(b"\r\n")[0].split()
    if words[0] not in PLAIN or b"b" not in words[2:]:
        return words[1]
    try:
        return base64.b64decode(words[1])
    except ValueError:
        return words[1]


def flags(rng, command, newer):
    """Flags of the command, most of them well formed, sometimes one that is unknown or given twice."""
    plain = [bytes([flag]) for flag in PLAIN[command] if newer or (command, bytes([flag])) not in NEWER]
    with_token = {flag: tokens for flag, tokens in WITH_TOKEN[command].items() if newer or (command, flag) not in NEWER}
    chosen = [flag for flag in rng.sample(plain, rng.randrange(0, 5)) if flag != b"b" or rng.random() < 0.3]
    for flag in rng.sample(sorted(with_token), rng.randrange(0, 3)):
        tokens = with_token[flag]
        # Later tokens are odder: choose them less often.
        chosen.append(flag + tokens[min(rng.randrange(len(tokens)), rng.randrange(len(tokens)))])
    if command in (b"mg", b"ma") and any(len(flag) > 32 for flag in chosen):
        # memcached notices such an opaque only after changing the item, so the two servers would hold different items.
        chosen = [flag for flag in chosen if len(flag) <= 32 or command == b"mg" and not {f[:1] for f in chosen} & {b"N", b"T", b"R"}]
    if rng.random() < 0.05:
        chosen.append(rng.choice(ODD + chosen))
    rng.shuffle(chosen)
    return chosen


def request(rng, newer):
    pick = rng.choice
    kind = pick([b"mg"] * 4 + [b"ms"] * 4 + [b"md", b"ma", b"ma", b"classic"])
    if kind == b"classic":
        return classic(rng)
    words = [kind, pick(KEYS)]
    value = b""
    if kind == b"ms":
        value = pick(VALUES)
        words.append(b"%d" % len(value))
        value += b"\r\n"
    words += flags(rng, kind, newer)
    return b" ".join(words) + b"\r\n" + value


def classic(rng):
    pick = rng.choice
    key, value = pick(KEYS), pick(VALUES)
    return pick(
        [
            b"set %b 7 0 %d\r\n%b\r\n" % (key, len(value), value),
            b"append %b 7 0 %d\r\n%b\r\n" % (key, len(value), value),
            b"cas %b 3 0 %d %%{unique}\r\n%b\r\n" % (key, len(value), value),
            b"gets %b\r\n" % key,
            b"get %b\r\n" % key,
            b"incr %b 3\r\n" % key,
            b"delete %b\r\n" % key,
            b"touch %b 1000\r\n" % key,
        ]
    )


def conversation(rng, newer):
    """Requests that are sent one at a time, each after the reply to the previous one. `newer` includes features added after memcached 1.6.18."""
    return [request(rng, newer) for _ in range(rng.randrange(5, 25))]

"""Requests and replies of the meta commands."""

BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
BAD_TOKEN = b"CLIENT_ERROR bad token in command line format\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
BAD_KEY = b"CLIENT_ERROR error decoding key\r\n"
DUPLICATE = b"CLIENT_ERROR duplicate flag\r\n"
INVALID = b"CLIENT_ERROR invalid flag\r\n"
INVALID_OR_DUPLICATE = b"CLIENT_ERROR invalid or duplicate flag\r\n"
LONG_OPAQUE = b"CLIENT_ERROR opaque token too long\r\n"
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
LONG_KEY = b"k" * 251
HD, EN, NF, NS, EX = b"HD\r\n", b"EN\r\n", b"NF\r\n", b"NS\r\n", b"EX\r\n"


def ms(key, data, flags=b""):
    return b"ms %b %d%b\r\n%b\r\n" % (key, len(data), b" " + flags if flags else b"", data)


def va(data, flags=b""):
    return b"VA %d%b\r\n%b\r\n" % (len(data), b" " + flags if flags else b"", data)


STORE = (ms(b"a", b"x"), HD)

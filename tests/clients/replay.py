"""Keeps a server warm with what changes in another one: reads the lines of `watch mutations json` from FROM, and gives TO the items.

Some items are not copied, and the program prints a line for each of them: an item whose key is binary and longer than 186 bytes, because its
base64 form is too long for a command; a stale item (`md` with `I`); and an item that TO refuses."""

import base64
import json
import socket
import sys
import time
import urllib.parse

# Longer ones are times, in milliseconds since 1970.
RELATIVE_MS_MAX = 30 * 24 * 3600 * 1000
KEY_BYTES_MAX = 250


class Server:
    """A connection that asks for one thing at a time."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))
        self.lines = self.socket.makefile("rb")

    def ask(self, command):
        self.socket.sendall(command)
        line = self.lines.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        return line.rstrip(b"\r\n").decode()


def named(key):
    """The key for a meta command, and the flag that belongs to it."""
    if all(0x20 < byte < 0x7F for byte in key):
        return key, b""
    return base64.b64encode(key), b" b"


def give(source, target, key):
    """Has the target have what the source has. Returns why it has not, if so."""
    word, flag = named(key)
    if len(word) > KEY_BYTES_MAX:
        return "the key is too long for base64"
    words = source.ask(b"mg %s v f t m%s\r\n" % (word, flag)).split()
    if words[0] == "EN":
        answer = target.ask(b"md %s%s\r\n" % (word, flag))
        return None if answer in ("HD", "NF") else answer
    if words[0] != "VA":
        return " ".join(words)
    value = source.lines.read(int(words[1]) + 2)
    if "X" in words[2:]:
        return "it is out of date"
    flags, left_ms = (next(word[1:] for word in words[2:] if word[0] == letter) for letter in "ft")
    answer = target.ask(b"ms %s %s F%s m%s%s\r\n%s" % (word, words[1].encode(), flags.encode(), lifetime(int(left_ms)), flag, value))
    return None if answer == "HD" else answer


def lifetime(left_ms):
    """The flag for an item that is over in this time, or never for a negative one."""
    if left_ms < 0:
        return b""
    if left_ms > RELATIVE_MS_MAX:
        left_ms += time.time_ns() // 1_000_000
    return b" T%d" % left_ms


def follow(lines, source, target):
    """Passes changes on, line by line. Returns how many lines the source has left out."""
    lost = 0
    for line in lines:
        change = json.loads(line)
        if change["type"] == "lost":
            lost += change["lines"]
            print(f"lost: {change['lines']} lines", file=sys.stderr)
        elif why := give(source, target, urllib.parse.unquote_to_bytes(change["key"])):
            print(f"not given: {change['key']}: {why}", file=sys.stderr)
    return lost


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: replay.py FROM TO, each HOST:PORT")
    places = [(host, int(port)) for host, _, port in (place.rpartition(":") for place in sys.argv[1:])]
    watched, source, target = Server(*places[0]), Server(*places[0]), Server(*places[1])
    answer = watched.ask(b"watch mutations json\r\n")
    if answer != "OK":
        raise SystemExit(f"FROM does not show changes as JSON: {answer}")
    lost = follow(watched.lines, source, target)
    print(f"FROM has ended the connection; {lost} lines were left out")


if __name__ == "__main__":
    main()

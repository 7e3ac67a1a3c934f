"""Keeps a server warm with what changes in another one: reads the lines of `watch mutations json` from FROM, and gives TO the items."""

import base64
import json
import socket
import sys
import urllib.parse


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
    """Has the target have what the source has."""
    word, flag = named(key)
    words = source.ask(b"mg %s v f t m%s\r\n" % (word, flag)).split()
    if words[0] != "VA":
        return target.ask(b"md %s%s\r\n" % (word, flag))
    value = source.lines.read(int(words[1]) + 2)
    flags, left_ms = (next(word[1:] for word in words[2:] if word[0] == letter) for letter in "ft")
    lifetime = b"" if left_ms == "-1" else b" T%s" % left_ms.encode()
    return target.ask(b"ms %s %s F%s m%s%s\r\n%s" % (word, words[1].encode(), flags.encode(), lifetime, flag, value))


def follow(lines, source, target):
    """Passes changes on, line by line. Returns how many lines the source has left out."""
    lost = 0
    for line in lines:
        change = json.loads(line)
        if change["type"] == "lost":
            lost += change["lines"]
        else:
            give(source, target, urllib.parse.unquote_to_bytes(change["key"]))
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

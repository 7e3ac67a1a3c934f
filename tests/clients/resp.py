"""RESP, byte by byte: commands, raw replies, and a real Redis to compare with."""

import os
import shutil
import subprocess
import time

import pytest
from harness import PATIENCE_S, Wire, free_port


def command(*arguments):
    """A command as an array of bulk strings."""
    arguments = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
    return b"*%d\r\n" % len(arguments) + b"".join(b"$%d\r\n%s\r\n" % (len(it), it) for it in arguments)


def reply(wire):
    """The bytes of one reply, whatever its type."""
    line = wire.line()
    kind, rest = line[:1], line[1:].rstrip(b"\r\n")
    if kind in b"$=" and int(rest) >= 0:
        return line + wire.receive(int(rest) + 2)
    elements = {b"*": 1, b"~": 1, b">": 1, b"%": 2}.get(kind, 0) * max(int(rest), 0) if kind in b"*~>%" else 0
    return line + b"".join(reply(wire) for _ in range(elements))


def say(wire, *arguments):
    """The reply to one command."""
    wire.send(command(*arguments))
    return reply(wire)


def tool(name):
    """A program of Redis, or a skipped test that says what is missing."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (apt-get install redis-server redis-tools)")
    return path


class Redis:
    """A Redis server that keeps nothing. Use it as a context manager."""

    def __init__(self, *flags):
        self.port = free_port()
        flags = ("--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", "/tmp", *flags)
        self.process = subprocess.Popen(
            [os.environ.get("GLIMMER_REDIS") or tool("redis-server"), "--port", str(self.port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                Wire(self.port).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.process.kill()
                    raise
                time.sleep(0.01)

    def wire(self):
        return Wire(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait(PATIENCE_S)

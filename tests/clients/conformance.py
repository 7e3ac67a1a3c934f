"""Rows of a conformance suite: what is sent, what is answered byte for byte, and which clause of the protocol's document says so.

`%{name}` in a reply stands for digits (in a binary reply: for eight bytes) that the row calls by this name: what was answered first is
what the name stands for in every request and reply after it. A name that begins with an underscore stands for anything each time.
"""

import re
from dataclasses import dataclass

# The version in Debian 12, against which the rows were written.
OLDEST = (1, 6, 18)
# The version that the server reports.
NEWEST = (1, 6, 45)

PLACE = re.compile(rb"%\{(\w+)\}")


@dataclass(frozen=True)
class Row:
    """One clause, as a conversation on its own connection."""

    clause: str
    what: str
    exchanges: tuple
    since: tuple = OLDEST

    @property
    def name(self):
        return f"{self.clause}: {self.what}"


def rows(clause, table, since=OLDEST):
    """Rows of one clause, from a table of descriptions and exchanges."""
    return [Row(clause, what, tuple(exchanges), since) for what, exchanges in table.items()]


class Names:
    """The values of a conversation's names so far."""

    def __init__(self, anything):
        self.anything = anything
        self.known = {}

    def filled(self, data):
        return PLACE.sub(lambda place: self.known[place[1]], data)

    def pattern(self, reply):
        """A reply as an expression that matches it and captures new names."""
        expression, end, seen = b"", 0, set()
        for place in PLACE.finditer(reply):
            expression += re.escape(reply[end : place.start()])
            end, name = place.end(), place[1]
            if name in self.known:
                expression += re.escape(self.known[name])
            elif name.startswith(b"_"):
                expression += self.anything
            elif name in seen:
                expression += b"(?P=" + name + b")"
            else:
                seen.add(name)
                expression += b"(?P<" + name + b">" + self.anything + b")"
        return re.compile(expression + re.escape(reply[end:]), re.DOTALL)

    def learn(self, found):
        self.known |= {name.encode(): data for name, data in found.groupdict().items()}


def converse(wire, row, barrier, anything):
    """Runs the row's conversation. `barrier` is a request whose reply ends an exchange: nothing else may arrive before it."""
    request_behind, reply_behind = barrier
    names = Names(anything)
    for request, reply in row.exchanges:
        request = names.filled(request)
        wire.send(request + request_behind)
        received = received_until(wire, reply_behind, reply.count(reply_behind))
        found = names.pattern(reply).fullmatch(received)
        assert found, f"{row.name}\n  sent     {request!r}\n  expected {reply!r}\n  received {received!r}"
        names.learn(found)


def received_until(wire, end, before=0):
    """Receives everything before the final `end`, which is removed. The data before it contains `end` that many times and may arrive in pieces."""
    while not (wire.pending.endswith(end) and wire.pending.count(end) > before):
        data = wire.socket.recv(65536)
        assert data, f"closed after {wire.pending!r}"
        wire.pending += data
    received, wire.pending = wire.pending[: -len(end)], b""
    return received

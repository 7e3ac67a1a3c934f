"""The same generated requests to memcached and to another server, and every difference between their replies.

    python tests/clients/differential.py --seed 7 --requests 5000

A conversation is a connection of its own on emptied servers. Its seed is the run's seed and its number, so that one alone can be replayed.
Differences that `docs/memcached-differences.md` explains are recognised by name and counted; any other fails the run.
"""

import argparse
import random
import re
import socket
import struct
import sys
from collections import Counter
from dataclasses import dataclass

import binary
import known_differences
import requests_binary
import requests_meta
import requests_text
from conformance import OLDEST
from harness import PATIENCE_S, Server, server_binary, shorten, version

# After this many unknown differences, more would not tell anything new.
DIFFERENCES_SHOWN = 10
TEXT_UNIQUE = re.compile(rb"(?m)^(VALUE \S+ \d+ \d+ |(?:HD|VA \d+) (?:[^\r\n]* )?c)(\d+)")
# Time passes for one server while the other answers.
TEXT_SECONDS = re.compile(rb"(?<= [tl])\d+(?=[ \r])")
# For a key whose CAS unique is unknown.
NO_UNIQUE = 77_777_777
PLACE = re.compile(rb"%\{unique\}")


@dataclass(frozen=True)
class Difference:
    kind: str
    number: int
    request: bytes
    theirs: bytes
    ours: bytes

    def __str__(self):
        return (
            f"{self.kind} conversation {self.number}\n  request   {shorten(self.request)}\n"
            f"  memcached {shorten(self.theirs)}\n  ours      {shorten(self.ours)}"
        )


class Side:
    """One server's side of a conversation.

    Uniques are its own: each key's are compared by the order in which they first appear. Two keys may have the same one.
    """

    def __init__(self, server):
        with server.wire() as wire:
            wire.exchange(b"flush_all\r\n", b"OK\r\n")
        self.wire = server.wire()
        self.wire.socket.settimeout(PATIENCE_S)
        self.uniques = {}
        self.newest = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.wire.close()

    def until_closed(self, data):
        """The answer to all requests, after which the connection is half closed."""
        try:
            self.wire.send(data)
            self.wire.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        replies = b""
        try:
            while received := self.wire.socket.recv(1 << 16):
                replies += received
        except ConnectionResetError:
            pass
        return replies

    def canonical(self, key, unique):
        seen = self.uniques.setdefault(key, {})
        self.newest[key] = unique
        return seen.setdefault(unique, len(seen))

    def line(self, request):
        """One line, with its value, and the no-op that ends its answer."""
        self.wire.send(request + b"mn\r\n")
        return self.until(b"MN\r\n")

    def text(self, request):
        """One request and the no-op that ends its answer."""
        key = requests_meta.key_of(request)
        newest = b"%d" % self.newest.get(key, NO_UNIQUE)
        self.wire.send(PLACE.sub(newest, request) + b"mn\r\n")
        reply = TEXT_SECONDS.sub(lambda found: b"%d" % round(int(found[0]), -1), self.until(b"MN\r\n"))
        return TEXT_UNIQUE.sub(lambda found: found[1] + b"#%d" % self.canonical(key, int(found[2])), reply)

    def binary(self, request):
        key = binary.key_of(request)
        newest = struct.pack(">Q", self.newest.get(key, NO_UNIQUE))
        barrier = binary.response(binary.NOOP, opaque=0xB0B0B0B0)
        self.wire.send(PLACE.sub(lambda _: newest, request) + binary.request(binary.NOOP, opaque=0xB0B0B0B0))
        return self.with_canonical_unique(key, self.until(barrier))

    def malformed_binary(self, packet):
        return self.with_canonical_unique(binary.key_of(packet), self.until_closed(packet))

    def with_canonical_unique(self, key, reply):
        """The reply with the first packet's CAS unique replaced."""
        if len(reply) < 24 or reply[16:24] == bytes(8):
            return reply
        unique = self.canonical(key, int.from_bytes(reply[16:24], "big"))
        return reply[:16] + struct.pack(">Q", unique) + reply[24:]

    def until(self, end):
        received = b""
        while not received.endswith(end):
            try:
                data = self.wire.socket.recv(1 << 16)
            except TimeoutError:
                return received + b"<no more>"
            except ConnectionResetError:
                data = b""
            if not data:
                return received + b"<closed>"
            received += data
        return received[: -len(end)]


def text_stream(rng, sides, newer):
    return all_at_once(requests_text.stream(rng, newer), [side.until_closed for side in sides])


def refused_lines(rng, sides, newer):
    return one_by_one(requests_text.refused(rng), [side.line for side in sides])


def malformed_packet(rng, sides, newer):
    return all_at_once([requests_binary.malformed(rng)], [side.malformed_binary for side in sides])


def meta_conversation(rng, sides, newer):
    return one_by_one(requests_meta.conversation(rng, newer), [side.text for side in sides])


def binary_conversation(rng, sides, newer):
    return one_by_one(requests_binary.conversation(rng), [side.binary for side in sides])


def all_at_once(requests, answers):
    together = b"".join(requests)
    theirs, ours = (answer(together) for answer in answers)
    return len(requests), (together, theirs, ours) if theirs != ours else None


def one_by_one(requests, answers):
    """Ends at the first difference, after which the two servers hold different items."""
    for done, request in enumerate(requests, 1):
        theirs, ours = (answer(request) for answer in answers)
        if theirs != ours:
            return done, (request, theirs, ours)
    return len(requests), None


KINDS = {
    "text": text_stream,
    "text-refusals": refused_lines,
    "meta": meta_conversation,
    "binary": binary_conversation,
    "malformed-binary": malformed_packet,
}


@dataclass
class Outcome:
    requests: int
    conversations: int
    known: Counter
    unknown: list

    def __str__(self):
        known = ", ".join(f"{name} {count}" for name, count in sorted(self.known.items())) or "none"
        return f"{self.requests} requests in {self.conversations} conversations; known differences: {known}; others: {len(self.unknown)}"


def compare(memcached, ours, seed, requests, kinds=tuple(KINDS), only=None):
    """Compares until the given number of requests of each kind was sent, or replays one conversation."""
    outcome = Outcome(0, 0, Counter(), [])
    newer = version(memcached) > OLDEST
    for kind in kinds:
        sent, number = 0, only or 0
        while sent < requests and len(outcome.unknown) < DIFFERENCES_SHOWN:
            rng = random.Random(f"{seed} {kind} {number}")
            with Side(memcached) as their_side, Side(ours) as our_side:
                count, difference = KINDS[kind](rng, (their_side, our_side), newer)
            sent += count
            outcome.conversations += 1
            if difference is not None:
                if name := known_differences.name_of(kind, *difference):
                    outcome.known[name] += 1
                else:
                    outcome.unknown.append(Difference(kind, number, *difference))
            if only is not None:
                break
            number += 1
        outcome.requests += sent
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="replays a run (default: another one each time)")
    parser.add_argument("--requests", type=int, default=5000, help="of each kind (default: %(default)s)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind of conversation")
    parser.add_argument("--conversation", type=int, default=None, help="only this one; takes --seed and --kind")
    parser.add_argument("--memcached", default="memcached", help="the reference (default: %(default)s)")
    parser.add_argument("--ours", default=None, help="the server that is compared (default: GLIMMER_BIN)")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(f"--seed {seed} --requests {arguments.requests}")
    with Server("-t", 1, binary=arguments.memcached) as memcached:
        with Server(binary=arguments.ours or server_binary()) as ours:
            outcome = compare(
                memcached, ours, seed, arguments.requests, arguments.kind or tuple(KINDS), arguments.conversation
            )
    for difference in outcome.unknown:
        print(difference)
    print(outcome)
    sys.exit(1 if outcome.unknown else 0)


if __name__ == "__main__":
    main()

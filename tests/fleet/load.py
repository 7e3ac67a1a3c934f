"""Load with values that carry key and version, so that each wrong and each old one is noticed.

A value is `KEY VERSION PADDING`. Each thread owns a part of the keys and alone stores these; it reads any. As a cache is used, an owner
stores again what it misses."""

import random
import threading
import time
from dataclasses import dataclass, field

PATIENCE_S = 30
PADDING = b"x" * 100
WRITES = 0.1


def key_of(number):
    return b"key%06d" % number


@dataclass
class Counts:
    """What one thread, or all of them, have seen in one phase."""

    reads: int = 0
    misses: int = 0
    stores: int = 0
    errors: int = 0
    # A value of another key, a version that was never stored, or bytes that are no value.
    wrong: int = 0
    # A version before the latest one whose store was acknowledged when the read began.
    old: int = 0
    # Seconds since the start of the load at which a request failed.
    failed_at: list = field(default_factory=list)
    examples: list = field(default_factory=list)

    @property
    def requests(self):
        return self.reads + self.stores

    def add(self, other):
        for name in ("reads", "misses", "stores", "errors", "wrong", "old"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failed_at += other.failed_at
        self.examples += other.examples


class Load:
    """Threads that read and store until they are told to stop."""

    def __init__(self, make_client, keys=3000, threads=3, seed=1, hot=None, pause_s=0.0005):
        self.keys, self.threads, self.hot, self.pause_s = keys, threads, hot, pause_s
        self.make_client = make_client
        # The latest version of each key whose store was sent, and was acknowledged.
        self.sent = [0] * keys
        self.acknowledged = [0] * keys
        self.start = time.monotonic()
        self.stopping = threading.Event()
        self.counts = [Counts() for _ in range(threads)]
        self.workers = [threading.Thread(target=self.work, args=(number, random.Random(seed + number))) for number in range(threads)]

    def __enter__(self):
        self.fill()
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for worker in self.workers:
            worker.join()

    def fill(self):
        """Stores every key. An engine that has just started may need some time. Returns how many attempts failed."""
        client = self.make_client()
        counts = Counts()
        deadline = time.monotonic() + PATIENCE_S
        for number in range(self.keys):
            while self.acknowledged[number] == 0:
                assert time.monotonic() < deadline, counts.examples[:3]
                self.store(client, number, counts)
        return counts.errors

    def now(self):
        return time.monotonic() - self.start

    def phase(self):
        """What has been counted since the last call."""
        total = Counts()
        for number in range(self.threads):
            counts, self.counts[number] = self.counts[number], Counts()
            total.add(counts)
        return total

    def work(self, me, chance):
        client = self.make_client()
        while not self.stopping.is_set():
            counts = self.counts[me]
            if self.hot is not None and chance.random() < self.hot:
                self.read(client, 0, counts, owner=me == 0)
            elif chance.random() < WRITES:
                number = chance.randrange(me, self.keys, self.threads)
                self.store(client, number, counts)
            else:
                number = chance.randrange(self.keys)
                self.read(client, number, counts, owner=number % self.threads == me)
            if self.pause_s:
                time.sleep(self.pause_s)

    def store(self, client, number, counts):
        version = self.sent[number] + 1
        self.sent[number] = version
        counts.stores += 1
        try:
            value = b"%s %d %s" % (key_of(number), version, PADDING)
            if put(client, key_of(number), value):
                self.acknowledged[number] = version
                return
            why = "not stored"
        except Exception as error:  # Each library has errors of its own.
            why = error
        self.failed(counts, why)

    def read(self, client, number, counts, owner):
        least = self.acknowledged[number]
        counts.reads += 1
        try:
            value = client.get(key_of(number).decode())
        except Exception as error:
            self.failed(counts, error)
            return
        if value is None:
            counts.misses += 1
            if owner:
                self.store(client, number, counts)
            return
        words = value.split(b" ")
        is_value = len(words) == 3 and words[0] == key_of(number) and words[2] == PADDING and words[1].isdigit()
        if not is_value or not 0 < int(words[1]) <= self.sent[number]:
            counts.wrong += 1
            counts.examples.append(f"{key_of(number)}: {value[:60]!r}")
        elif int(words[1]) < least:
            counts.old += 1

    def failed(self, counts, why):
        counts.errors += 1
        counts.failed_at.append(self.now())
        if len(counts.examples) < 3:
            counts.examples.append(f"{type(why).__name__}: {why}")


def put(client, key, value):
    """Stores a value, and says whether the server has acknowledged it."""
    if hasattr(client, "behaviors"):
        return client.set(key.decode(), value)
    return client.set(key.decode(), value, noreply=False)

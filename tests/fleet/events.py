"""What happens to a fleet, one event at a time, and what its clients see of it."""

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from load import Load, key_of
from servers import Fleet, Relay, WrongInput


@dataclass
class Row:
    """What is shown of an event."""

    event: str
    requests: int = 0
    errors: int = 0
    # Seconds from the event, and from its end, to the last error.
    last_error_s: float = 0.0
    after_end_s: float = 0.0
    # Share of the keys that were elsewhere while it lasted, or after a change of the servers.
    moved: float | None = None
    missed: float = 0.0
    old: int = 0
    wrong: int = 0
    # Errors and old values after everything was well again.
    later: tuple[int, int] | None = None
    # What else there is to say, with {share} for this share.
    note: str = ""
    share: float = 0.0
    examples: list | None = None


def counted(event, counts, began, ended, **more):
    """A row for what was counted between the two, in seconds since the start of the load, and after it."""
    last = max(counts.failed_at, default=began)
    return Row(
        event,
        counts.requests,
        counts.errors,
        max(0.0, last - began),
        max(0.0, last - ended),
        missed=counts.misses / max(1, counts.reads),
        old=counts.old,
        wrong=counts.wrong,
        examples=counts.examples,
        **more,
    )


def cpu_s(pid):
    """CPU time of a process so far, in seconds."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Trial:
    """An engine over servers of one make."""

    def __init__(self, engine, binary, folder, outage_s=5.0, pause_s=0.0005, settled_s=1.0):
        self.engine, self.binary, self.folder = engine, binary, folder
        self.outage_s, self.pause_s, self.settled_s = outage_s, pause_s, settled_s

    @contextmanager
    def running(self, count=3, memory_files=False):
        with ExitStack() as stack:
            fleet = stack.enter_context(Fleet(self.binary, count, memory_files))
            engine = self.engine(self.folder)
            stack.callback(engine.stop)
            engine.start(fleet.addresses)
            yield fleet, engine

    def outage(self, event, begin, end, lasts_s, settle_s=None, prepare=None):
        """Load, an event that lasts, and its end; `begin` returns what `end` takes. What `prepare` does to the fleet is not counted."""
        with self.running() as (fleet, engine), Load(engine.client, pause_s=self.pause_s) as load:
            keys = {key_of(number) for number in range(load.keys)}
            if prepare:
                prepare(fleet)
                time.sleep(2 * self.settled_s)
            time.sleep(self.settled_s)
            before = fleet.holders(keys)
            load.phase()
            began = load.now()
            token = begin(fleet)
            time.sleep(lasts_s)
            moved = self.moved_while(fleet, before) if event.startswith("killed") else None
            end(fleet, token)
            ended = load.now()
            time.sleep(settle_s or max(self.settled_s, lasts_s))
            row = counted(event, load.phase(), began, ended, moved=moved)
            # Whatever has happened, everything is well again.
            time.sleep(self.settled_s)
            later = load.phase()
            row.later = (later.errors, later.old)
            row.wrong += later.wrong
            return row

    @staticmethod
    def moved_while(fleet, before):
        """Share of the keys that other servers have now."""
        now = fleet.holders(set(before))
        return sum(1 for key, holder in now.items() if before[key] != holder) / len(before)

    def killed(self):
        """A server is killed, and back after a while, empty."""

        def end(fleet, _):
            fleet.backends[0].start()

        return self.outage(f"killed, back after {self.outage_s:g} s", lambda fleet: fleet.backends[0].end(), end, self.outage_s)

    def stopped(self):
        """A server does not run for a while, and keeps what it has."""
        lasts_s = min(2.0, self.outage_s)
        return self.outage(
            f"stopped for {lasts_s:g} s",
            lambda fleet: fleet.backends[0].signal(signal.SIGSTOP),
            lambda fleet, _: fleet.backends[0].signal(signal.SIGCONT),
            lasts_s,
            max(3.0, lasts_s),
        )

    def slow(self):
        """A server answers, 50 ms later than before."""
        lasts_s = 2.0
        with ExitStack() as stack:
            fleet = stack.enter_context(Fleet(self.binary, 3))
            relay = stack.enter_context(Relay(fleet.backends[0].port))
            engine = self.engine(self.folder)
            stack.callback(engine.stop)
            engine.start([relay.address, *fleet.addresses[1:]])
            load = stack.enter_context(Load(engine.client, pause_s=self.pause_s))
            time.sleep(self.settled_s)
            load.phase()
            time.sleep(lasts_s)
            before = load.phase()
            began = load.now()
            relay.delay_s = 0.05
            time.sleep(lasts_s)
            relay.delay_s = 0.0
            row = counted("slower by 50 ms for 2 s", load.phase(), began, load.now())
            row.share, row.note = row.requests / max(1, before.requests), "{share} of the requests before"
            return row

    def full(self):
        """A server has no memory left, and evicts nothing (-M)."""

        def prepare(fleet):
            server = fleet.backends[0]
            server.end()
            server.start("-m", 10, "-M")
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
                for size in (500_000, 5_000, 50):
                    for number in range(40_000):
                        wire.sendall(b"set full%d-%d 0 0 %d\r\n%s\r\n" % (size, number, size, b"f" * size))
                        if not wire.recv(100).startswith(b"STORED"):
                            break

        nothing = lambda *_: None
        return self.outage("a server that is full (-M)", nothing, nothing, 2.0, prepare=prepare)

    def out_of_connections(self):
        """A server is back at once, but others than the engine have all the connections that it takes."""
        most = 64

        def begin(fleet):
            server = fleet.backends[0]
            server.end()
            server.start("-c", most)
            held = []
            for _ in range(most * 2):
                try:
                    held.append(socket.create_connection(("127.0.0.1", server.port), timeout=0.2))
                except OSError:
                    # memcached stops to listen.
                    break
            return held

        def end(_, held):
            for wire in held:
                wire.close()

        return self.outage("restarted, no connection left for 2 s", begin, end, 2.0, 3.0)

    def place(self, fleet, count):
        """Stores keys through the engine over the first servers, and says which server has each."""
        engine = self.engine(self.folder)
        try:
            engine.start(fleet.addresses[:count])
            for _ in range(3):
                for backend in fleet.backends:
                    backend.flush()
                load = Load(engine.client, threads=1)
                # On a busy machine a server may have seemed to fail.
                if load.fill() == 0:
                    break
            return fleet.holders({key_of(number) for number in range(load.keys)})
        finally:
            engine.stop()

    def resized(self, added):
        """A server is added, or the last one removed for good: the share of keys that another server has then."""
        with Fleet(self.binary, 4) as fleet:
            before, after = (self.place(fleet, count) for count in ((3, 4) if added else (4, 3)))
            moved = sum(1 for key in before if before[key] != after[key]) / len(before)
            event = "a fourth server added" if added else "one of four removed for good"
            return Row(event, requests=2 * len(before), moved=moved, note="ideal 25%")

    def warmed(self):
        """A server is added, and filled from the others through the proxy, which knows the new places."""
        with Fleet(self.binary, 4) as fleet:
            self.place(fleet, 3)
            engine = self.engine(self.folder)
            try:
                engine.start(fleet.addresses)
                shares = [self.missing_share(engine)]
                for backend in fleet.backends[:3]:
                    line = [self.binary, "copy", backend.address, f"127.0.0.1:{engine.port}", "--rate", "0", "--skip-present"]
                    subprocess.run(line, check=True, capture_output=True)
                shares.append(self.missing_share(engine))
            finally:
                engine.stop()
            note = "after glimmer copy from each, {share} missed"
            return Row("a fourth server added, then filled", requests=12_000, missed=shares[0], note=note, share=shares[1])

    @staticmethod
    def missing_share(engine):
        client, keys = engine.client(), Load(None, threads=1).keys
        missing = sum(1 for number in range(keys) if client.get(key_of(number).decode()) is None)
        client.close()
        return missing / keys

    def rolling(self, memory_files):
        """Each server is restarted in its turn."""
        name = "rolling restart, " + ("with memory files" if memory_files else "empty")
        with self.running(memory_files=memory_files) as (fleet, engine), Load(engine.client, pause_s=self.pause_s) as load:
            time.sleep(self.settled_s)
            load.phase()
            began = load.now()
            for backend in fleet.backends:
                backend.end(signal.SIGUSR1 if backend.is_memcached and memory_files else signal.SIGTERM)
                backend.start()
                # Engines need a while to take a server back.
                time.sleep(3 * self.settled_s)
            return counted(name, load.phase(), began, load.now())

    def hot_key(self):
        """One key is read 100 times as often as the mean of the others."""
        keys = 300
        share = 100 / (keys + 99)
        with self.running() as (fleet, engine):
            with Load(engine.client, keys=keys, hot=share) as load:
                time.sleep(self.settled_s)
                load.phase()
                gets = [backend.figure("cmd_get") for backend in fleet.backends]
                time.sleep(2.0)
                counts = load.phase()
                gets = [backend.figure("cmd_get") - before for backend, before in zip(fleet.backends, gets)]
            row = counted("a key at 100 times the mean", counts, 0.0, 0.0)
            hottest = max(range(len(gets)), key=gets.__getitem__)
            row.share, row.note = gets[hottest] / max(1, sum(gets)), "its server has {share} of the reads"
            if not fleet.backends[0].is_memcached:
                lines = fleet.backends[hottest].ask(b"stats hotkeys")
                named = any(key_of(0) in line for line in lines[:2])
                row.note += "; stats hotkeys names it first" if named else "; stats hotkeys does not name it"
            return row

    def cost(self, bench):
        """Microseconds of CPU that a proxy takes for a request, with one or 16 on their way on each of 50 connections."""
        found = []
        for pipeline in (1, 16):
            with self.running() as (_, engine):
                line = [bench, "load", f"127.0.0.1:{engine.port}", "-B", engine.protocol, "--keys", "10k", "--seconds", 4, "--warm-up", 0, "--pipeline", pipeline]
                before = cpu_s(engine.process.pid)
                done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
                took_s = cpu_s(engine.process.pid) - before
                if done.returncode != 0:
                    raise WrongInput(f"glimmer-bench has failed: {done.stderr.strip().splitlines()[-1]}")
                # Its requests, and the stores before them.
                requests = int(re.match(r"(\d+) operations", done.stdout).group(1)) + 10_000
                found.append(1e6 * took_s / requests)
        return found

    def all(self):
        yield self.killed
        yield self.stopped
        if self.engine.goes_over_tcp:
            yield self.slow
        yield self.full
        yield self.out_of_connections
        if self.engine.places_keys:
            yield lambda: self.resized(True)
            yield lambda: self.resized(False)
        if self.engine.places_keys and self.engine.has_meta and not self.binary.endswith("memcached"):
            yield self.warmed
        yield lambda: self.rolling(False)
        yield lambda: self.rolling(True)
        yield self.hot_key

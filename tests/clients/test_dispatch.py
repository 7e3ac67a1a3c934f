"""Every dispatch policy, in every access mode that it works with: replies stay in order, and no item is lost."""

import itertools
import random
import subprocess
import threading
import time

import pytest
from clauses_text import END, STORED, store, value
from harness import PATIENCE_S, Server, server_binary

ACCESS = ("erew", "crew", "crcw")
ANY_ACCESS = ("keyhash", "owner")
CONNECTIONS = 6
ROUNDS = 30


def names():
    """The names of all policies with what may follow them, from the message that refuses another one."""
    refused = subprocess.run([server_binary(), "serve", "--dispatch", "none"], capture_output=True, text=True)
    assert refused.returncode == 1, refused
    return refused.stderr.split("one of ")[1].split(";")[0].strip()


def policies():
    """The names of all policies."""
    return [name.split("[")[0] for name in names().split(", ")]


def pipeline(rng, connection, items):
    """Random requests for the keys of one connection, and the replies."""
    requests, replies = [], []
    for _ in range(rng.randrange(1, 120)):
        key = b"c%d:%d" % (connection, rng.randrange(12))
        kind = rng.randrange(4)
        if kind == 0:
            data = b"v" * rng.choice((1, 80, 9000))
            items[key] = data
            requests.append(store(data, key))
            replies.append(STORED)
        elif kind == 1:
            requests.append(b"delete %b\r\n" % key)
            replies.append(b"DELETED\r\n" if items.pop(key, None) is not None else b"NOT_FOUND\r\n")
        else:
            requests.append(b"get %b\r\n" % key)
            replies.append((value(key, items[key]) if key in items else b"") + END)
    return b"".join(requests), b"".join(replies)


@pytest.mark.parametrize("access", ACCESS)
def test_replies_are_in_order(ours, access):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    for policy in policies():
        if access != "crcw" and policy not in ANY_ACCESS:
            continue
        with Server("-t", 4, "--access", access, "--dispatch", policy) as server:
            assert server.stats("settings")["glimmer_dispatch"] == policy
            wires = [server.wire() for _ in range(CONNECTIONS)]
            items = [{} for _ in wires]
            for _ in range(ROUNDS):
                expected = []
                for connection, wire in enumerate(wires):
                    requests, replies = pipeline(rng, connection, items[connection])
                    wire.send(requests)
                    expected.append(replies)
                for wire, replies in zip(wires, expected):
                    wire.expect(replies)
            assert int(server.stats()["curr_items"]) == sum(map(len, items))
            for wire in wires:
                wire.close()


@pytest.mark.parametrize("access", ACCESS)
def test_the_owner_of_a_key_executes_every_request_for_it(ours, access):
    """Whichever worker has the connection: only one executes requests that it received itself."""
    with Server("-t", 4, "--access", access, "--dispatch", "owner") as server:
        wires = [server.wire() for _ in range(16)]
        for _ in range(5):
            for wire in wires:
                wire.exchange(store(b"1", b"never-stored"), STORED + value(b"never-stored", b"1"))

        def counted():
            workers = server.stats("workers")
            counts = ("requests", "requests_crossed")
            return [[int(workers[f"worker:{worker}:{count}"]) for worker in range(4)] for count in counts]

        # A worker shows what it has counted when its turn ends, and a reply leaves before.
        deadline = time.monotonic() + PATIENCE_S
        while sum(map(sum, counted())) < 16 * 5 * 2:
            assert time.monotonic() < deadline, counted()
        requests, crossed = counted()
        for wire in wires:
            wire.close()
    assert sum(requests) + sum(crossed) == 16 * 5 * 2
    assert sum(count > 0 for count in requests) <= 1, requests
    assert all(request == 0 or crossing == 0 for request, crossing in zip(requests, crossed)), (requests, crossed)


def test_the_policy_changes_while_the_server_runs(ours):
    with Server("-t", 2, "-I", "2m") as server:
        with server.wire() as wire:
            assert server.stats("dispatch")["policy"] == "size-aware", "the default"
            wire.exchange(b"dispatch size-aware:4096\r\n", b"OK\r\n")
            shown = server.stats("dispatch")
            assert (shown["policy"], shown["large_from_bytes"]) == ("size-aware", "4096")
            assert shown["workers_on_plan"] == "2"
            assert shown["worker:0:role"] == "small"
            assert int(shown["worker:1:sizes_from_bytes"]) == 4096
            large = b"v" * 300_000
            wire.exchange(store(large, b"large"), STORED)
            for _ in range(10):
                wire.exchange(b"get large\r\nget absent\r\n", value(b"large", large) + END + END)
            shown = server.stats("dispatch")
            assert shown["class:524288:requests"] == "11"
            assert shown["class:524288:value_bytes"] == str(11 * len(large))
            wire.exchange(b"dispatch nosuch\r\n", b"CLIENT_ERROR dispatch: one of %b\r\n" % names().encode())
            wire.exchange(b"dispatch keyhash:1\r\n", b"CLIENT_ERROR dispatch: keyhash without a colon\r\n")
            wire.exchange(b"dispatch\r\n", b"CLIENT_ERROR dispatch: one of %b\r\n" % names().encode())
            wire.exchange(b"dispatch keyhash\r\nget large\r\n", b"OK\r\n" + value(b"large", large) + END)
            assert server.stats("settings")["glimmer_dispatch"] == "keyhash"


def test_a_policy_that_the_access_mode_excludes_is_refused(ours):
    with Server("-t", 2, "--access", "erew") as server, server.wire() as wire:
        wire.exchange(
            b"dispatch size-aware\r\n",
            b"CLIENT_ERROR dispatch: size-aware hands large requests to any worker: change the access mode too "
            b"(dispatch size-aware crcw), or say dispatch keyhash erew\r\n",
        )
        assert server.stats("dispatch")["policy"] == "keyhash"
    refused = subprocess.run(
        [server_binary(), "serve", "-t", "2", "--dispatch", "size-aware", "--large-cores", "2"],
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    assert "--large-cores leaves no worker for small requests" in refused.stderr


TABLES = {"cache": (), "store": ("--mode", "store"), "memc3": ("--table", "memc3")}
COMBINATIONS = [
    *(f"{policy} {access}" for policy in ANY_ACCESS for access in ACCESS),
    *(f"{policy} crcw" for policy in ("size-aware:4096", "handoff", "stealing")),
]


def every_ordered_pair():
    """A walk over all combinations that takes each step from one to another at least once."""
    walk = [COMBINATIONS[0]]
    for before, after in itertools.permutations(COMBINATIONS, 2):
        walk += [after] if walk[-1] == before else [before, after]
    return walk


@pytest.mark.parametrize("table", TABLES)
def test_items_stay_as_they_are_between_every_pair_of_policies_and_access_modes(ours, table):
    with Server("-t", 3, "-I", "2m", *TABLES[table]) as server, server.wire() as wire:
        items = {b"key:%d" % n: b"v" * size for n, size in enumerate([0, 10, 100, 5_000, 100_000] * 6)}
        for n, (key, data) in enumerate(items.items()):
            wire.exchange(b"ms %b %d T%d F%d\r\n%b\r\n" % (key, len(data), 0 if n % 2 else 1_000_000, n, data), b"HD\r\n")
        wire.exchange(store(b"100", b"number"), STORED)

        def shown(key):
            wire.send(b"mg %b c f s\r\n" % key)
            return wire.line()

        before = {key: shown(key) for key in items}
        for step, combination in enumerate(every_ordered_pair()):
            wire.exchange(b"dispatch %b\r\n" % combination.encode(), b"OK\r\n")
            policy, access = combination.split()
            state = server.stats("dispatch")
            assert (state["policy"], state["access"]) == (policy.split(":")[0], access)
            assert state["workers_on_plan"] == "3"
            key = random.choice(list(items))
            wire.exchange(b"get %b\r\n" % key, b"VALUE %b %d %d\r\n%b\r\nEND\r\n" % (key, list(items).index(key), len(items[key]), items[key]))
            wire.exchange(b"incr number 1\r\n", b"%d\r\n" % (101 + step))
        assert {key: shown(key) for key in items} == before
        for n, key in enumerate(items):
            wire.send(b"mg %b t\r\n" % key)
            left = wire.line().split(b"t")[1].strip()
            assert left == b"-1" if n % 2 else 999_000 < int(left) <= 1_000_000
        assert server.stats("settings")["glimmer_access"] == access
        # A flush that is due later takes place under another access mode.
        wire.exchange(b"flush_all 1\r\n", b"OK\r\n")
        wire.exchange(b"dispatch keyhash erew\r\n", b"OK\r\n")
        while shown(b"key:0") != b"EN\r\n":
            time.sleep(0.01)
        for key in items:
            assert shown(key) == b"EN\r\n"


@pytest.mark.parametrize("table", TABLES)
def test_replies_stay_in_order_while_policies_and_access_modes_change(ours, table):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    with Server("-t", 3, *TABLES[table]) as server:
        done, switched = threading.Event(), []

        def switch():
            rng = random.Random(seed)
            with server.wire() as wire:
                while not done.is_set():
                    wire.exchange(b"dispatch %b\r\n" % rng.choice(COMBINATIONS).encode(), b"OK\r\n")
                    switched.append(1)

        switcher = threading.Thread(target=switch)
        switcher.start()
        try:
            rng = random.Random(seed + 1)
            wires = [server.wire() for _ in range(CONNECTIONS)]
            items = [{} for _ in wires]
            for _ in range(4 * ROUNDS):
                expected = []
                for connection, wire in enumerate(wires):
                    requests, replies = pipeline(rng, connection, items[connection])
                    wire.send(requests)
                    expected.append(replies)
                for wire, replies in zip(wires, expected):
                    wire.expect(replies)
        finally:
            done.set()
            switcher.join()
        assert int(server.stats()["curr_items"]) == sum(map(len, items))
        assert len(switched) > 10
        for wire in wires:
            wire.close()


def test_a_switch_is_refused_with_what_to_do(ours):
    """Also under the default policy, which needs crcw."""
    with Server("-t", 2) as server, server.wire() as wire:
        wire.exchange(
            b"dispatch erew\r\n",
            b"CLIENT_ERROR dispatch: size-aware hands large requests to any worker: change the access mode too "
            b"(dispatch size-aware crcw), or say dispatch keyhash erew\r\n",
        )
        wire.exchange(b"dispatch keyhash nosuch\r\n", b"CLIENT_ERROR dispatch: an access mode is one of erew, crew, crcw\r\n")
        assert server.stats("dispatch")["access"] == "crcw"
    with Server("-t", 1) as server, server.wire() as wire:
        wire.exchange(b"dispatch size-aware erew\r\n", b"OK\r\n")
        wire.exchange(
            b"dispatch handoff\r\n",
            b"CLIENT_ERROR dispatch: handoff leaves no worker that executes requests; lower N or raise -t\r\n",
        )
        assert server.stats("dispatch")["policy"] == "size-aware"


def test_listings_and_watchers_stay_at_home(ours):
    """A connection visits the worker for large values for a large read, and for no listing or watch of one."""
    large = b"v" * 4096
    with Server("-t", 2, "--dispatch", "size-aware:1024") as server:
        wires = [server.wire() for _ in range(8)]

        def visits():
            # A worker shows what it has counted when its turn ends, and a reply leaves before.
            time.sleep(0.1)
            return int(server.stats("glimmer")["visits"])

        wires[0].exchange(store(large, b"large") + store(b"s", b"small"), STORED * 2)
        before = visits()
        for wire in wires:
            wire.send(b"lru_crawler metadump all\r\n")
            wire.expect(b"OK\r\n")
            lines = {wire.line().split()[0], wire.line().split()[0]}
            assert lines == {b"key=large", b"key=small"}
            wire.expect(END)
        watcher = server.wire()
        watcher.send(b"watch fetchers\r\n")
        watcher.expect(b"OK\r\n")
        assert visits() == before
        # The connections of one of the two workers visit the other one, and the watcher is told all the same.
        for wire in wires:
            wire.send(b"get large\r\n")
            wire.expect(value(b"large", large) + END)
            assert b"key=large" in watcher.line()
        assert before < visits() <= before + len(wires)
        for wire in wires:
            wire.close()
        watcher.close()

"""Every dispatch policy, in every access mode that it works with: replies stay in order, and no item is lost."""

import random
import subprocess

import pytest
from clauses_text import END, STORED, store, value
from harness import Server, server_binary

ACCESS = ("erew", "crew", "crcw")
CONNECTIONS = 6
ROUNDS = 30


def policies():
    """The names, from the message that refuses another one."""
    refused = subprocess.run([server_binary(), "serve", "--dispatch", "none"], capture_output=True, text=True)
    assert refused.returncode == 1, refused
    names = refused.stderr.split("one of ")[1].split(";")[0]
    return names.split(", ")


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
        workers = server.stats("workers")
        for wire in wires:
            wire.close()
    requests = [int(workers[f"worker:{worker}:requests"]) for worker in range(4)]
    crossed = [int(workers[f"worker:{worker}:requests_crossed"]) for worker in range(4)]
    assert sum(requests) + sum(crossed) == 16 * 5 * 2
    assert sum(count > 0 for count in requests) <= 1, requests
    assert all(request == 0 or crossing == 0 for request, crossing in zip(requests, crossed)), (requests, crossed)

"""Auto discovery: the list of servers that clients of hosted memcached ask for."""

import asyncio
import time

import emcache
import pytest
from django_elastipymemcache.client import AWSElastiCacheClient
from harness import PATIENCE_S, Server

STORED = b"STORED\r\n"


def set_cluster(server, version, *nodes):
    """Tells a server of others, in the form of hosted memcached."""
    text = f"{version}\n" + " ".join(f"localhost|127.0.0.1|{node.port}" for node in nodes) + "\n"
    with server.wire() as wire:
        wire.exchange(b"config set cluster 0 %d\r\n%s\r\n" % (len(text), text.encode()), STORED)


@pytest.fixture
def pair(ours):
    """Two servers that know of each other."""
    with Server("-t", 2) as first, Server("-t", 1) as second:
        for server in (first, second):
            set_cluster(server, 1, first, second)
        yield first, second


def sets(server):
    return int(server.stats()["cmd_set"])


def test_bytes(ours):
    with Server("-t", 2) as server, server.wire() as wire:
        wire.exchange(b"config get cluster\r\n", b"END\r\n")
        wire.exchange(b"config delete cluster\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"config set cluster 0 19\r\n3\r\na|10.0.0.1|11211\r\n", STORED)
        # Every worker has it.
        for _ in range(8):
            with server.wire() as other:
                other.exchange(b"config get cluster\r\n", b"CONFIG cluster 0 19\r\n3\na|10.0.0.1|11211\n\r\nEND\r\n")
        wire.exchange(
            b"config set cluster 0 3\r\n1 a\r\n",
            b"CLIENT_ERROR a cluster is a version and HOST|ADDRESS|PORT for each server\r\n",
        )
        wire.exchange(b"config set cluster 0 16385\r\n" + b"x" * 16385 + b"\r\n", b"SERVER_ERROR object too large for cache\r\n")
        # What is wrong leaves the old one.
        wire.exchange(b"config get cluster\r\n", b"CONFIG cluster 0 19\r\n3\na|10.0.0.1|11211\n\r\nEND\r\n")
        wire.exchange(b"config delete cluster\r\n", b"DELETED\r\n")
        wire.exchange(b"config get cluster\r\n", b"END\r\n")


def test_the_longest(ours):
    node = b"%s|10.0.0.1|11211 " % (b"h" * 233)
    text = b"1\n" + node * 65
    text += b"h" * (16384 - len(text) - 4) + b"||1\n"
    with Server("-t", 1) as server, server.wire() as wire:
        for piece in (b"config set cluster 0 16384\r\n", text[:9000], text[9000:], b"\r\n"):
            wire.send(piece)
        wire.expect(b"STORED\r\n")
        wire.exchange(b"config get cluster\r\n", b"CONFIG cluster 0 16384\r\n" + text + b"\r\nEND\r\n")


def test_it_can_be_forbidden(ours):
    with Server("-t", 1, "--disable-commands", "config") as server, server.wire() as wire:
        for command in (b"config set cluster 0 5\r\n1 a|b\r\n", b"config delete cluster\r\n"):
            wire.exchange(command, b"CLIENT_ERROR config not allowed\r\n")
        wire.exchange(b"config get cluster\r\n", b"END\r\n")


def test_pymemcache_for_django(pair):
    """The client that pymemcache's own client for hosted memcached has become."""
    first, second = pair
    client = AWSElastiCacheClient(first.url, timeout=PATIENCE_S, discovery_interval=0.05)
    assert set(client.clients) == {first.url, second.url}
    for number in range(50):
        assert client.set(f"key{number}", b"%d" % number, noreply=False)
    assert all(client.get(f"key{number}") == b"%d" % number for number in range(50))
    assert sets(first) and sets(second) and sets(first) + sets(second) == 50
    set_cluster(first, 2, first)
    deadline = time.monotonic() + PATIENCE_S
    while set(client.clients) != {first.url}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        client.get("key0")
    client.close()


def test_emcache(pair):
    first, second = pair

    async def run():
        address = emcache.MemcachedHostAddress("127.0.0.1", first.port)
        client = await emcache.create_client([address], autodiscovery=True, autodiscovery_poll_interval=0.05)
        for number in range(50):
            await client.set(b"key%d" % number, b"%d" % number)
        for number in range(50):
            assert (await client.get(b"key%d" % number)).value == b"%d" % number
        assert sets(first) and sets(second) and sets(first) + sets(second) == 50
        set_cluster(first, 2, first)
        deadline = time.monotonic() + PATIENCE_S
        while len(client.cluster_managment().nodes()) != 1:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await client.close()

    asyncio.run(run())

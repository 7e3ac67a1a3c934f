"""aiomcache's verbs, text protocol, against the server at $HOST and $PORT."""

import asyncio
import os

import aiomcache
import pytest


def on_empty_server(test):
    """Turns a coroutine with a client argument into a test."""

    def run():
        async def main():
            client = aiomcache.Client(os.environ["HOST"], int(os.environ["PORT"]))
            await client.flush_all()
            await test(client)
            await client.close()

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


@on_empty_server
async def test_set_and_get(client):
    assert await client.get(b"key") is None
    for value in (b"", b"text", bytes(range(256)), b"END\r\n", b"x" * 100_000):
        assert await client.set(b"key", value)
        assert await client.get(b"key") == value
    longest = b"k" * 250
    assert await client.set(longest, b"1", exptime=100)
    assert await client.get(longest, b"default") == b"1"


@on_empty_server
async def test_multi_get(client):
    for n in range(100):
        await client.set(b"k%d" % n, b"%d" % n)
    keys = [b"k%d" % n for n in range(110)]
    expected = tuple(b"%d" % n if n < 100 else None for n in range(110))
    assert await client.multi_get(*keys) == expected


@on_empty_server
async def test_add_replace_append_prepend(client):
    assert not await client.replace(b"key", b"0")
    assert not await client.append(b"key", b"0")
    assert await client.add(b"key", b"1")
    assert not await client.add(b"key", b"2")
    assert await client.append(b"key", b"2")
    assert await client.prepend(b"key", b"0")
    assert await client.get(b"key") == b"012"


@on_empty_server
async def test_cas(client):
    await client.set(b"key", b"1")
    value, unique = await client.gets(b"key")
    assert value == b"1"
    assert await client.cas(b"key", b"2", unique)
    assert not await client.cas(b"key", b"3", unique)
    assert await client.get(b"key") == b"2"


@on_empty_server
async def test_counters(client):
    with pytest.raises(aiomcache.exceptions.ClientException):
        await client.incr(b"count")
    await client.set(b"count", b"10")
    assert await client.incr(b"count", 5) == 15
    assert await client.decr(b"count", 100) == 0
    await client.set(b"count", b"x")
    with pytest.raises(aiomcache.exceptions.ClientException):
        await client.incr(b"count")


@on_empty_server
async def test_delete_and_touch(client):
    assert not await client.delete(b"key")
    assert not await client.touch(b"key", 10)
    await client.set(b"key", b"1")
    assert await client.touch(b"key", 10)
    assert await client.delete(b"key")


@on_empty_server
async def test_stats_and_version(client):
    assert (await client.version()).startswith(b"1.6.")
    assert b"curr_items" in await client.stats()
    assert b"maxbytes" in await client.stats(b"settings")


@on_empty_server
async def test_many_at_once(client):
    await client.set(b"count", b"0")
    await asyncio.gather(*(client.incr(b"count") for _ in range(500)))
    assert await client.get(b"count") == b"500"

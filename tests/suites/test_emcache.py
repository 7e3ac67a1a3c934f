"""emcache's verbs, text protocol, against the server at $HOST and $PORT."""

import asyncio
import os

import emcache
import pytest

ADDRESS = emcache.MemcachedHostAddress(os.environ["HOST"], int(os.environ["PORT"]))


def on_empty_server(test):
    """Turns a coroutine with a client argument into a test."""

    def run():
        async def main():
            client = await emcache.create_client([ADDRESS], timeout=20)
            await client.flush_all(ADDRESS)
            await test(client)
            await client.close()

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


async def holds(client, key, expected):
    item = await client.get(key)
    assert (item and item.value) == expected


@on_empty_server
async def test_set_and_get(client):
    await holds(client, b"key", None)
    for value in (b"", b"text", bytes(range(256)), b"END\r\n", b"x" * 100_000):
        await client.set(b"key", value, flags=7)
        item = await client.get(b"key", return_flags=True)
        assert (item.value, item.flags) == (value, 7)


@on_empty_server
async def test_get_many(client):
    for n in range(100):
        await client.set(b"k%d" % n, b"%d" % n, noreply=True)
    found = await client.get_many([b"k%d" % n for n in range(110)])
    assert {key: item.value for key, item in found.items()} == {b"k%d" % n: b"%d" % n for n in range(100)}


@on_empty_server
async def test_add_replace_append_prepend(client):
    for verb in (client.replace, client.append, client.prepend):
        with pytest.raises(emcache.NotStoredStorageCommandError):
            await verb(b"key", b"0")
    await client.add(b"key", b"1")
    with pytest.raises(emcache.NotStoredStorageCommandError):
        await client.add(b"key", b"2")
    await client.append(b"key", b"2")
    await client.prepend(b"key", b"0")
    await holds(client, b"key", b"012")


@on_empty_server
async def test_cas(client):
    await client.set(b"key", b"1")
    unique = (await client.gets(b"key")).cas
    await client.cas(b"key", b"2", unique)
    with pytest.raises(emcache.StorageCommandError):
        await client.cas(b"key", b"3", unique)
    await holds(client, b"key", b"2")


@on_empty_server
async def test_counters(client):
    with pytest.raises(emcache.NotFoundCommandError):
        await client.increment(b"count", 1)
    await client.set(b"count", b"10")
    assert await client.increment(b"count", 5) == 15
    assert await client.decrement(b"count", 100) == 0


@on_empty_server
async def test_delete_and_touch(client):
    for call in (client.delete(b"key"), client.touch(b"key", 10)):
        with pytest.raises(emcache.NotFoundCommandError):
            await call
    await client.set(b"key", b"1")
    await client.touch(b"key", 100)
    await holds(client, b"key", b"1")
    await client.touch(b"key", -1)
    await holds(client, b"key", None)


@on_empty_server
async def test_administration(client):
    assert (await client.version(ADDRESS)).startswith("1.6.")
    assert "curr_items" in await client.stats(ADDRESS)
    assert "maxbytes" in await client.stats(ADDRESS, "settings")
    await client.verbosity(ADDRESS, 1)
    await client.cache_memlimit(ADDRESS, 64)

"""pymemcache, every command."""

import time

import pytest
from pymemcache.client.base import Client, PooledClient
from pymemcache.exceptions import MemcacheClientError, MemcacheServerError


@pytest.fixture
def client(server):
    client = Client(server.address, timeout=20, no_delay=True)
    yield client
    client.close()


def test_set_and_get(client):
    assert client.set("key", b"value", noreply=False) is True
    assert client.get("key") == b"value"
    assert client.get("absent") is None
    assert client.get("absent", b"default") == b"default"


def test_set_without_reply(client):
    client.set("key", b"value", noreply=True)
    assert client.get("key") == b"value"


def test_empty_value(client):
    assert client.set("empty", b"", noreply=False)
    assert client.get("empty") == b""


def test_flags(client):
    client.set("key", b"value", flags=0xFFFF_FFFF, noreply=False)
    assert client.raw_command("get key", b"END\r\n") == b"VALUE key 4294967295 5\r\nvalue\r\n"


def test_add_and_replace(client):
    assert client.replace("key", b"1", noreply=False) is False
    assert client.add("key", b"2", noreply=False) is True
    assert client.add("key", b"3", noreply=False) is False
    assert client.get("key") == b"2"
    assert client.replace("key", b"4", noreply=False) is True
    assert client.get("key") == b"4"


def test_append_and_prepend(client):
    assert client.append("key", b"x", noreply=False) is False
    assert client.prepend("key", b"x", noreply=False) is False
    client.set("key", b"middle", noreply=False)
    assert client.append("key", b">", noreply=False) is True
    assert client.prepend("key", b"<", noreply=False) is True
    assert client.get("key") == b"<middle>"


def test_gets_and_cas(client):
    assert client.cas("key", b"1", "7", noreply=False) is None
    client.set("key", b"1", noreply=False)
    value, unique = client.gets("key")
    assert value == b"1"
    assert client.cas("key", b"2", unique, noreply=False) is True
    assert client.cas("key", b"3", unique, noreply=False) is False
    assert client.get("key") == b"2"
    assert client.gets("absent") == (None, None)


def test_every_mutation_changes_the_unique(client):
    client.set("key", b"10", noreply=False)
    seen = [client.gets("key")[1]]
    for mutate in (
        lambda: client.set("key", b"10", noreply=False),
        lambda: client.replace("key", b"10", noreply=False),
        lambda: client.append("key", b"0", noreply=False),
        lambda: client.prepend("key", b"1", noreply=False),
        lambda: client.incr("key", 1),
        lambda: client.decr("key", 1),
    ):
        mutate()
        seen.append(client.gets("key")[1])
    assert len(set(seen)) == len(seen)
    client.get("key")
    assert client.gets("key")[1] == seen[-1], "reading changes nothing"


def test_many(client):
    items = {f"many-{i}": b"%d" % i for i in range(1000)}
    assert client.set_many(items, noreply=False) == []
    assert client.get_many(items) == items
    assert {k: v for k, (v, _) in client.gets_many(items).items()} == items
    assert client.get_many([]) == {}
    assert client.delete_many(items, noreply=False) is True
    assert client.get_many(items) == {}


def test_get_many_in_one_command(client):
    keys = [f"multi-{i:04}" for i in range(1000)]
    client.set_many({key: key.encode() for key in keys[::2]}, noreply=True)
    found = client.get_many(keys)
    assert found == {key: key.encode() for key in keys[::2]}


def test_get_many_with_a_line_of_any_length(client):
    """A line of 400 KB, all of which the client sends before it reads."""
    keys = [f"multi-{i:014}" for i in range(20_000)]
    stored = {key: b"x" * 1000 for key in keys[::100]}
    client.set_many(stored, noreply=True)
    assert client.get_many(keys) == stored


def test_delete(client):
    assert client.delete("key", noreply=False) is False
    client.set("key", b"1", noreply=False)
    assert client.delete("key", noreply=False) is True
    assert client.get("key") is None


def test_increment_and_decrement(client):
    assert client.incr("count", 1) is None
    assert client.decr("count", 1) is None
    client.set("count", b"10", noreply=False)
    assert client.incr("count", 5) == 15
    assert client.decr("count", 20) == 0
    client.set("count", b"18446744073709551615", noreply=False)
    assert client.incr("count", 2) == 1
    client.set("count", b"text", noreply=False)
    with pytest.raises(MemcacheClientError):
        client.incr("count", 1)


def test_touch_and_expiry(client):
    assert client.touch("key", 1, noreply=False) is False
    client.set("short", b"1", expire=1, noreply=False)
    client.set("negative", b"1", expire=-1, noreply=False)
    client.set("touched", b"1", expire=1, noreply=False)
    client.set("long", b"1", expire=100, noreply=False)
    client.set("shortened", b"1", noreply=False)
    assert client.touch("touched", 100, noreply=False) is True
    assert client.touch("shortened", 1, noreply=False) is True
    assert client.get("negative") is None
    time.sleep(2.1)
    assert client.get_many(["short", "touched", "long", "shortened"]) == {"touched": b"1", "long": b"1"}


def test_flush(client):
    client.set("key", b"1", noreply=False)
    assert client.flush_all(noreply=False) is True
    assert client.get("key") is None
    client.set("key", b"2", noreply=False)
    assert client.get("key") == b"2"


def test_a_mebibyte(client):
    value = bytes(range(256)) * 4000
    assert client.set("large", value, noreply=False) is True
    assert client.get("large") == value


def test_too_large(client):
    client.set("large", b"old", noreply=False)
    with pytest.raises(MemcacheServerError, match="object too large for cache"):
        client.set("large", bytes((1 << 20) + 1), noreply=False)
    assert client.get("large") is None, "the old value does not survive a refused overwrite"


def test_stats_and_version(client):
    stats = client.stats()
    assert stats[b"pid"] > 0
    assert stats[b"threads"] in (1, 4)
    assert client.version().startswith(b"1.6")
    assert client.stats("settings")[b"maxconns"] == 1024


def test_quit(client):
    client.set("key", b"1", noreply=False)
    client.quit()
    assert client.get("key") == b"1", "a new connection is made"


def test_a_pool_of_connections(server):
    pool = PooledClient(server.address, max_pool_size=8, timeout=20)
    for i in range(100):
        assert pool.set(f"pool-{i}", b"%d" % i, noreply=False)
    assert all(pool.get(f"pool-{i}") == b"%d" % i for i in range(100))
    pool.close()

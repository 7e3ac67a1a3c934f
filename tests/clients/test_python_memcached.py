"""python-memcached, every command."""

import time

import memcache
import pytest


@pytest.fixture
def client(server):
    client = memcache.Client([server.url], cache_cas=True, socket_timeout=20, server_max_value_length=1 << 30)
    yield client
    client.disconnect_all()


def test_set_and_get(client):
    assert client.set("key", "value")
    assert client.get("key") == "value"
    assert client.get("absent") is None


@pytest.mark.parametrize("value", ["text", b"bytes", 7, 1 << 80, True, {"a": [1, None]}, "ümlaut", ""])
def test_values_of_every_type(client, value):
    assert client.set("typed", value)
    assert client.get("typed") == value


def test_compressed(client):
    value = "compressible " * 10_000
    assert client.set("compressed", value, min_compress_len=100)
    assert client.get("compressed") == value


def test_add_replace_append_prepend(client):
    assert not client.replace("key", "0")
    assert not client.append("key", "0")
    assert not client.prepend("key", "0")
    assert client.add("key", "1")
    assert not client.add("key", "2")
    assert client.append("key", "9")
    assert client.prepend("key", "0")
    assert client.get("key") == "019"
    assert client.replace("key", "new")
    assert client.get("key") == "new"


def test_cas(client):
    client.set("key", "1")
    assert client.gets("key") == "1"
    assert client.cas("key", "2")
    client.gets("key")
    client.set("key", "3")
    assert not client.cas("key", "4")
    assert client.get("key") == "3"


def test_multi(client):
    mapping = {f"k{i}": f"v{i}" for i in range(1000)}
    assert client.set_multi(mapping) == []
    assert client.get_multi(mapping) == mapping
    assert client.delete_multi(mapping) == 1
    assert client.get_multi(mapping) == {}


def test_delete_and_touch(client):
    client.set("key", "1")
    assert client.touch("key", 1) == 1
    assert client.delete("key")
    assert client.get("key") is None
    assert client.touch("key", 1) == 0


def test_increment_and_decrement(client):
    assert client.incr("count") is None
    client.set("count", "41")
    assert client.incr("count") == 42
    assert client.incr("count", 8) == 50
    assert client.decr("count", 51) == 0


def test_noreply(client):
    client.set("a", "1", noreply=True)
    client.add("b", "1", noreply=True)
    client.replace("b", "2", noreply=True)
    client.append("b", "3", noreply=True)
    client.prepend("b", "1", noreply=True)
    client.incr("a", 4, noreply=True)
    client.decr("a", 1, noreply=True)
    client.touch("a", 100, noreply=True)
    client.set("c", "1", noreply=True)
    client.delete("c", noreply=True)
    assert client.get_multi(["a", "b", "c"]) == {"a": "4", "b": "123"}


def test_expiry(client):
    client.set("relative", "1", time=1)
    client.set("absolute", "1", time=int(time.time()) + 100)
    client.set("past", "1", time=int(time.time()) - 100)
    assert client.get("past") is None
    assert client.get("absolute") == "1"
    time.sleep(2.1)
    assert client.get("relative") is None
    assert client.get("absolute") == "1"


def test_flush(client):
    client.set("key", "1")
    client.flush_all()
    assert client.get("key") is None


def test_stats(client):
    [(name, figures)] = client.get_stats()
    assert name.startswith("127.0.0.1")
    assert int(figures["pid"]) > 0
    [(_, settings)] = client.get_stats("settings")
    assert settings["maxconns"] == "1024"

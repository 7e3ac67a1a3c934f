"""pylibmc, which is libmemcached: every command of its text protocol, and the same over the binary protocol."""

import time

import pytest
from conftest import require_protocol

pylibmc = pytest.importorskip("pylibmc", reason="no wheel of pylibmc for this Python")


@pytest.fixture(params=["text", "binary"])
def client(server, request):
    require_protocol(server, request.param)
    client = pylibmc.Client([server.url], binary=request.param == "binary", behaviors={"cas": True, "tcp_nodelay": True})
    yield client
    client.disconnect_all()


def test_set_and_get(client):
    assert client.set("key", b"value")
    assert client.get("key") == b"value"
    assert client.get("absent") is None
    assert "key" in client
    client["item"] = "text"
    assert client["item"] == "text"
    del client["item"]
    with pytest.raises(KeyError):
        client["item"]


def test_add_replace_append_prepend(client):
    if client.binary:
        # The binary protocol says why.
        with pytest.raises(pylibmc.NotFound):
            client.replace("key", b"0")
    else:
        assert not client.replace("key", b"0")
    assert client.add("key", b"1")
    assert not client.add("key", b"2")
    assert client.append("key", b"9")
    assert client.prepend("key", b"0")
    assert client.get("key") == b"019"
    assert client.replace("key", b"new")
    assert client.get("key") == b"new"


def test_cas(client):
    client.set("key", b"1")
    value, unique = client.gets("key")
    assert value == b"1"
    assert client.cas("key", b"2", unique)
    assert not client.cas("key", b"3", unique)
    assert client.get("key") == b"2"


def test_multi(client):
    mapping = {f"k{i}": b"v%d" % i for i in range(1000)}
    assert client.set_multi(mapping) == []
    assert client.get_multi(list(mapping)) == mapping
    assert client.add_multi({"k1": b"x", "new": b"y"}) == ["k1"]
    assert client.delete_multi(list(mapping))
    assert client.get_multi(list(mapping)) == {}


def test_increment_and_decrement(client):
    with pytest.raises(pylibmc.NotFound):
        client.incr("count")
    client.set("count", 41)
    assert client.incr("count") == 42
    assert client.decr("count", 50) == 0
    assert client.incr_multi(["count"], delta=3) is None
    assert client.get("count") == 3


def test_touch_and_expiry(client):
    assert not client.touch("absent", 1)
    client.set("key", b"1", time=1)
    client.set("touched", b"1", time=1)
    assert client.touch("touched", 100)
    time.sleep(2.1)
    assert client.get("key") is None
    assert client.get("touched") == b"1"


def test_large_and_compressed(client):
    value = bytes(range(256)) * 3900
    assert client.set("large", value)
    assert client.get("large") == value
    assert client.set("compressed", value, min_compress_len=100)
    assert client.get("compressed") == value
    with pytest.raises(pylibmc.Error):
        client.set("too-large", bytes(2 << 20))


@pytest.mark.parametrize("behavior", ["no_block", "_noreply"])
def test_writes_without_waiting(server, behavior):
    client = pylibmc.Client([server.url], behaviors={behavior: True})
    for i in range(300):
        client.set(f"k{i}", b"%d" % i)
    client.disconnect_all()
    keys = [f"k{i}" for i in range(300)]
    reader = pylibmc.Client([server.url])
    deadline = time.monotonic() + 20
    while len(reader.get_multi(keys)) < 300 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reader.get_multi(keys) == {key: b"%d" % i for i, key in enumerate(keys)}


def test_flush_and_stats(client):
    client.set("key", b"1")
    assert client.flush_all()
    assert client.get("key") is None
    [(_, figures)] = client.get_stats()
    assert int(figures[b"pid"] if b"pid" in figures else figures["pid"]) > 0

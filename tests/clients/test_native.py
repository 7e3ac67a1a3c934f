"""The Python package of the native client, from its wheel."""

import os
import threading

import pytest
from harness import Server, is_memcached, server_binary

glimmer = pytest.importorskip("glimmer", reason="the wheel was not built")


@pytest.fixture
def server():
    if is_memcached(server_binary()):
        pytest.skip("memcached has no native protocol")
    with Server("-t", 2, "-m", 64, "--native-port", -1) as server:
        yield server


def native_port(server):
    with server.wire() as wire:
        wire.send(b"stats native\r\n")
        while (line := wire.line().strip()) != b"END":
            name, value = line.split()[1:]
            if name == b"port:127.0.0.1:0":
                port = int(value)
    return port


def test_every_operation(server):
    client = glimmer.Client("127.0.0.1", native_port(server))
    assert client.get("none") is None
    client.put("greeting", b"hello", flags=7)
    assert client.get(b"greeting") == b"hello"
    item = client.get_item("greeting")
    assert (item.value, item.flags) == (b"hello", 7)
    assert not client.add("greeting", b"again")
    assert client.replace("greeting", b"hi")
    assert not client.compare_and_swap("greeting", item.cas, b"late")
    assert client.compare_and_swap("greeting", client.get_item("greeting").cas, b"swapped")
    assert client.touch("greeting", 100)
    client.put("count", b"41")
    assert client.increment("count") == 42
    assert client.decrement("count", 50) == 0
    assert client.increment("none") is None
    assert client.get_many(["greeting", "none", b"count"]) == {"greeting": b"swapped", b"count": b"0 "}
    assert client.delete("greeting")
    assert not client.delete("greeting")
    large = bytes(range(256)) * 1000
    client.put("large", large)
    assert client.get("large") == large


def test_failures(server):
    client = glimmer.Client("127.0.0.1", native_port(server))
    with pytest.raises(glimmer.InvalidKey):
        client.get("k" * 251)
    with pytest.raises(glimmer.TooLarge):
        client.put("key", bytes(2 << 20))
    client.put("text", b"text")
    with pytest.raises(glimmer.NotANumber):
        client.increment("text")
    assert issubclass(glimmer.Silent, glimmer.Error)
    with pytest.raises(ValueError):
        glimmer.Client.connect_to_all([("127.0.0.1", server.port, native_port(server), 1)], "by dice")


def test_a_server_that_is_silent_is_not_waited_for(server):
    with Server("-t", 1, "-m", 64, "--native-port", -1) as other:
        members = [("127.0.0.1", one.port, native_port(one), 1) for one in (server, other)]
        settings = {"deadline": 2, "away_after": 1, "retry": 3600}
        stays = glimmer.Client.connect_to_all(members, **settings)
        ejects = glimmer.Client.connect_to_all(members, eject=True, **settings)
        keys = [f"key {number}" for number in range(100)]
        for key in keys:
            stays.put(key, b"value")
        other.stop()
        lost = []
        for key in keys:
            try:
                stays.get(key)
            except (glimmer.Silent, glimmer.Away) as error:
                lost.append(type(error))
        assert lost[0] is glimmer.Silent and len(lost) > 10
        assert set(lost[1:]) == {glimmer.Away}
        with pytest.raises(glimmer.Silent):
            for key in keys:
                ejects.put(key, b"elsewhere")
        for key in keys:
            ejects.put(key, b"elsewhere")
            assert ejects.get(key) == b"elsewhere"
    with pytest.raises(ValueError):
        glimmer.Client("127.0.0.1", 1, deadline=-1)


def test_threads_share_a_client(server):
    client = glimmer.Client.connect_to_all([("127.0.0.1", server.port, native_port(server), 1)], "ketama")
    client.put("count", b"0")

    def count():
        for _ in range(50):
            client.increment("count")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("count") == b"200"


def test_processes_that_fork_are_clients_of_their_own(server):
    port = native_port(server)
    client = glimmer.Client("127.0.0.1", port)
    client.put("count", b"0")

    def change(name):
        for _ in range(20):
            client.increment("count")
        client.put(f"{name} by the client from before", b"value")
        glimmer.Client("127.0.0.1", port).put(f"{name} by one of its own", b"value")

    names = [f"child {number}" for number in range(3)]
    children = []
    for name in names:
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                change(name)
                failed = 0
            finally:
                os._exit(failed)
        children.append(child)
    change("parent")
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.get("count") == b"80"
    keys = [f"{name} by {client}" for name in [*names, "parent"] for client in ("the client from before", "one of its own")]
    assert client.get_many(keys) == dict.fromkeys(keys, b"value")


def test_keys_are_where_libmemcached_has_them(server):
    pylibmc = pytest.importorskip("pylibmc", reason="no wheel of pylibmc for this Python")
    with Server("-t", 1, "-m", 64, "--native-port", -1) as other:
        servers = [server, other]
        for name, weights in [("ketama", [1, 1]), ("ketama_weighted", [1, 1]), ("ketama_weighted", [3, 1])]:
            theirs = pylibmc.Client(
                [f"127.0.0.1:{server.port}:{weight}" for server, weight in zip(servers, weights)], behaviors={name: True}
            )
            members = [("127.0.0.1", server.port, native_port(server), weight) for server, weight in zip(servers, weights)]
            ours = glimmer.Client.connect_to_all(members, name)
            for number in range(100):
                key = f"{name}:{weights[0]}:{number}"
                ours.put(key, key.encode())
                assert theirs.get(key) == key.encode()
            theirs.disconnect_all()

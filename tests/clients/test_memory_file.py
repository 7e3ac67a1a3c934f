"""A store in a memory file (-e): after a stop, and after the process was killed under load."""

import random
import signal
import socket
import subprocess
import threading
import time
import zlib
from pathlib import Path

import pytest
from harness import PATIENCE_S, Server, command, server_binary
from clauses_text import STORED

KEYS = 400
KILLS = 5

TABLES = {"mica": [], "memc3": ["--table", "memc3"], "store": ["--mode", "store"]}
ACCESS_MODES = ["erew", "crew", "crcw"]

SHM = Path("/dev/shm")


@pytest.fixture
def file(ours, tmp_path):
    folder = SHM if SHM.is_dir() else tmp_path
    path = folder / f"glimmer-clients-{random.getrandbits(48):x}"
    yield path
    path.unlink(missing_ok=True)


def kill(server):
    """Ends the server by force."""
    server.process.kill()
    server.process.communicate(timeout=PATIENCE_S)


def refused(*flags, port=0):
    line = command(server_binary(), *flags, port=port)
    ended = subprocess.run(line, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    assert ended.returncode != 0
    return ended.stderr


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_the_next_server_goes_on(file, table, is_killed):
    flags = ("-t", 2, *TABLES[table], "-e", file)
    server = Server(*flags)
    with server.wire() as wire:
        wire.exchange(b"set stays 7 0 5\r\nvalue\r\n", STORED)
        wire.exchange(b"set expires 0 1 1\r\nx\r\n", STORED)
        wire.exchange(b"set large 0 500 300000\r\n" + b"y" * 300_000 + b"\r\n", STORED)
        wire.exchange(b"set gone 0 0 1\r\nx\r\ndelete gone\r\n", STORED + b"DELETED\r\n")
        wire.exchange(b"set flushed 0 0 1\r\nx\r\n", STORED)
        wire.exchange(b"append stays 0 0 1\r\n!\r\n", STORED)
    kill(server) if is_killed else server.__exit__(None, None, None)
    time.sleep(1.1)
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"get stays expires gone\r\n", b"VALUE stays 7 6\r\nvalue!\r\nEND\r\n")
        wire.exchange(b"get large\r\n", b"VALUE large 0 300000\r\n" + b"y" * 300_000 + b"\r\nEND\r\n")
        stats = server.stats("glimmer")
        assert stats["items_lost"] == "0"
        assert int(stats["items_restored"]) >= 3
        assert server.stats("settings")["memory_file"] == str(file)
        assert int(server.stats()["uptime"]) < 30
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"get stays large flushed\r\n", b"END\r\n")
        assert " use" in refused(*flags), "another process has it"


def test_what_cannot_be_used_is_refused(file):
    with Server("-t", 2, "-e", file):
        pass
    assert "made with -m 64, and this server has -m 65" in refused("-m", 65, "-t", 2, "-e", file)
    assert "made with --mode cache" in refused("-M", "-t", 2, "-e", file)
    assert "made with --table mica" in refused("--table", "memc3", "-t", 2, "-e", file)
    # With it, keys are hashed in another way, and what was replaced or deleted would come back.
    native = refused("--native-port", -1, "-t", 2, "-e", file)
    assert "made with native clients (--native-port) false" in native
    with Server("-m", 65, "-t", 2, "-e", file, "--memory-file-discard") as server:
        assert server.stats("glimmer")["items_restored"] == "0"
    assert "made with KiB beside items (-t, " in refused("-m", 65, "-t", 4, "-e", file)
    for foreign in b"not ours", bytes(65_536) + b"behind zeros":
        file.write_bytes(foreign)
        assert "no memory file" in refused("-t", 2, "-e", file)
        assert file.read_bytes() == foreign


def test_a_start_that_fails_leaves_no_file(file):
    with Server("-t", 2) as other:
        assert "in use" in refused("-m", 65, "-t", 2, "-e", file, port=other.port)
    assert not file.exists()
    flags = ("-t", 2, "-e", file)
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"set stays 0 0 1\r\nx\r\n", STORED)
    with Server("-t", 2) as other:
        assert "in use" in refused(*flags, port=other.port)
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"get stays\r\n", b"VALUE stays 0 1\r\nx\r\nEND\r\n")


def test_only_the_owner_reads_the_file(file):
    file.touch(0o644)
    for _ in range(2):
        file.chmod(0o644)
        with Server("-t", 2, "-e", file):
            assert file.stat().st_mode & 0o777 == 0o600


def test_a_snapshot_does_not_wait_for_the_servers_own_memory_file(file):
    for own in file, f"{file}.unfinished":
        assert "a file each" in refused("-e", own, "--snapshot", file)
        assert not Path(own).exists()


def value_of(key, version, size):
    body = (b"%d:%d:" % (key, version) * (size // 3 + 1))[:size]
    return b"%d %d %d|" % (key, version, zlib.crc32(body)) + body


class Client(threading.Thread):
    """Sets and deletes keys of its own until the server is gone."""

    def __init__(self, server, number, seed, known):
        super().__init__()
        self.known, self.random, self.number = known, random.Random(seed), number
        self.pending = None
        self.socket = socket.create_connection(server.address)
        self.lines = self.socket.makefile("rb")

    def run(self):
        try:
            while self.step():
                pass
        except OSError:
            pass

    def step(self):
        key = self.random.randrange(KEYS) * 3 + self.number
        version = abs(self.known.get(key, 0)) + 1
        size = self.random.choice([0, 8, 8, 30, 30, 200, 3000, 40_000])
        deletes = self.random.random() < 0.15
        self.pending = (key, -version if deletes else version)
        if deletes:
            self.socket.sendall(b"delete k%d\r\n" % key)
        else:
            value = value_of(key, version, size)
            self.socket.sendall(b"set k%d 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        if not self.lines.readline().endswith(b"\r\n"):
            return False
        self.known[key] = self.pending[1]
        self.pending = None
        return True


def read(wire_lines, connection, key):
    connection.sendall(b"get k%d\r\n" % key)
    line = wire_lines.readline()
    if line == b"END\r\n":
        return None
    value = wire_lines.read(int(line.split()[3]) + 2)[:-2]
    assert wire_lines.readline() == b"END\r\n"
    return value


@pytest.mark.parametrize(
    "table, access", [("mica", access) for access in ACCESS_MODES] + [("memc3", None), ("store", None)]
)
def test_what_was_acknowledged_survives_kills(file, table, access):
    """Of each key, the value that was acknowledged last is there, or the one that was underway."""
    seed = random.getrandbits(32)
    print("seed", seed)
    chance = random.Random(seed)
    access = access or chance.choice(ACCESS_MODES)
    flags = ("-t", 2, *TABLES[table], "--access", access, "-e", file)
    known = [{}, {}, {}]
    server = Server(*flags)
    for _ in range(KILLS):
        clients = [Client(server, number, chance.random(), known[number]) for number in range(3)]
        for client in clients:
            client.start()
        time.sleep(chance.uniform(0, 0.1))
        server.process.send_signal(signal.SIGKILL)
        server.process.communicate(timeout=PATIENCE_S)
        for client in clients:
            client.join(PATIENCE_S)
        server = Server(*flags)
        lost = int(server.stats("glimmer")["items_lost"])
        with socket.create_connection(server.address) as connection, connection.makefile("rb") as lines:
            missing = 0
            for client in clients:
                pending = dict([client.pending]) if client.pending else {}
                for key, version in list(client.known.items()) + list(pending.items()):
                    value = read(lines, connection, key)
                    expected = {client.known.get(key, 0), pending.get(key, client.known.get(key, 0))}
                    if value is None:
                        missing += all(version > 0 for version in expected)
                        client.known[key] = -abs(version)
                        continue
                    head, body = value.split(b"|", 1)
                    of, found, sum_ = map(int, head.split())
                    assert of == key and zlib.crc32(body) == sum_, f"key {key} is torn"
                    assert found in expected, f"key {key}: {found} is none of {expected}"
                    client.known[key] = found
            assert missing <= lost
    server.__exit__(None, None, None)


def test_a_unique_that_a_client_chose_has_no_snapshot_give_out_old_ones_again(ours, tmp_path):
    flags = ("-t", 1, "--snapshot", tmp_path / "snapshot")
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"ms k 1 c\r\nA\r\n", b"HD c1\r\n")
        wire.exchange(b"ms chosen 1 E1099511627775\r\nx\r\n", b"HD\r\n")
        server.stop(signal.SIGTERM)
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"set k 0 0 1\r\nB\r\n", STORED)
        wire.exchange(b"cas k 0 0 1 1\r\nC\r\n", b"EXISTS\r\n")

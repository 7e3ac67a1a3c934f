"""Reads over UDP that `--accelerate model` answers: a client finds the right bytes, sees its hits in
`stats accelerator`, and never an outdated value."""

import struct

import pytest
from conftest import MODES
from test_process import comes_to_rest, start_badly
from test_udp import Udp, served_over_udp
from test_watch import Watcher

OPCODES = {0x00: b"", 0x09: b"", 0x0C: b"key", 0x0D: b"key"}


@pytest.fixture(params=MODES)
def server(ours, request):
    with served_over_udp((*MODES[request.param], "--accelerate", "model")) as server:
        yield server


def binary_get(opcode, key):
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), 0, 0, 0, len(key), 0xABCD, 0) + key


def accelerator(server):
    return server.stats("accelerator")


def test_hits_have_the_right_bytes(server):
    with server.wire() as wire, Udp(server.udp_port) as udp:
        wire.exchange(b"set key 7 0 5\r\nhello\r\n", b"STORED\r\n")
        for _ in range(100):
            assert udp.ask(b"get key\r\n") == b"VALUE key 7 5\r\nhello\r\nEND\r\n"
        before = accelerator(server)
        assert int(before["hits_get"]) > 0 and int(before["live"]) > 0
        wire.send(b"gets key\r\n")
        expected = wire.line() + wire.line() + wire.line()
        cas = int(expected.split()[4])
        assert udp.ask(b"gets key\r\n") == expected
        for opcode, shown in OPCODES.items():
            header = struct.pack(
                ">BBHBBHIIQ", 0x81, opcode, len(shown), 4, 0, 0, 9 + len(shown), 0xABCD, cas
            )
            assert udp.ask(binary_get(opcode, b"key")) == header + b"\0\0\0\7" + shown + b"hello"
        after = accelerator(server)
        assert int(after["hits_gets"]) == int(before["hits_gets"]) + 1
        assert int(after["hits_binary"]) == int(before["hits_binary"]) + len(OPCODES)


def test_changes_are_seen_at_once(server):
    with server.wire() as wire, Udp(server.udp_port) as udp:
        for turn in range(20):
            value = b"value%d" % turn
            wire.exchange(b"set hot 0 0 %d\r\n%s\r\n" % (len(value), value), b"STORED\r\n")
            for _ in range(20):
                reply = b"VALUE hot 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
                assert udp.ask(b"get hot\r\n") == reply
        wire.exchange(b"touch hot -1\r\n", b"TOUCHED\r\n")
        assert udp.ask(b"get hot\r\n") == b"END\r\n"
        assert int(accelerator(server)["refreshes"]) > 0
        wire.exchange(b"set hot 0 0 1\r\n1\r\n", b"STORED\r\n")
        for _ in range(60):
            assert udp.ask(b"get hot\r\n") == b"VALUE hot 0 1\r\n1\r\nEND\r\n"
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
        assert udp.ask(b"get hot\r\n") == b"END\r\n"


def test_hits_count_as_reads(server):
    with server.wire() as wire, Udp(server.udp_port) as udp:
        wire.exchange(b"set counted 0 0 1\r\n1\r\n", b"STORED\r\n")
        before = int(server.stats()["get_hits"])
        for _ in range(200):
            udp.ask(b"get counted\r\n")
        assert int(server.stats()["get_hits"]) >= before + 200


def test_nothing_is_answered_while_somebody_watches(server):
    with server.wire() as wire, Udp(server.udp_port) as udp, Watcher(server, b"fetchers"):
        wire.exchange(b"set seen 0 0 1\r\n1\r\n", b"STORED\r\n")
        assert accelerator(server)["paused"] == "watched"
        hits = accelerator(server)["hits"]
        for _ in range(50):
            udp.ask(b"get seen\r\n")
        assert accelerator(server)["hits"] == hits


def test_it_idles_at_no_cost(server):
    with server.wire() as wire, Udp(server.udp_port) as udp:
        wire.exchange(b"set idle 0 1 1\r\n1\r\n", b"STORED\r\n")
        for _ in range(100):
            udp.ask(b"get idle\r\n")
        assert int(accelerator(server)["hits"]) > 0
    comes_to_rest(server)


@pytest.mark.parametrize(
    "flags, reason",
    [
        (["-p", "0"], "--accelerate answers memcached's UDP protocol: give its port with -U"),
        (
            ["-U", "11211", "--accelerate-from", "any"],
            "--accelerate-from is for an interface: give that with --accelerate xdp:IF",
        ),
        (
            ["-U", "11211", "--accelerate-slots", "255"],
            "--accelerate-slots 255 is out of range: 256 to 65536",
        ),
    ],
)
def test_it_does_not_start_half_configured(ours, flags, reason):
    code, lines = start_badly("--accelerate", "model", *flags)
    assert code != 0 and len(lines) == 1 and lines[0].endswith(reason), lines

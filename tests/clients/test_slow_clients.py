"""Clients that take their replies late or slowly: none of them is cut as long as there is memory."""

import socket
import threading
import time

import pytest
from clauses_text import END, STORED
from harness import PATIENCE_S, Server

VALUE_BYTES = 900_000
KEYS = 10


def shown(number):
    return b"VALUE k%d 0 %d\r\n" % (number, VALUE_BYTES) + bytes([number]) * VALUE_BYTES + b"\r\n"


def fill(server):
    with server.wire() as wire:
        for number in range(KEYS):
            data = bytes([number]) * VALUE_BYTES
            wire.exchange(b"set k%d 0 0 %d\r\n" % (number, VALUE_BYTES) + data + b"\r\n", STORED)


@pytest.mark.parametrize(
    "settings", [("-m", 64), ("-m", 1024), ("-m", 256, "-t", 4, "--access", "erew")], ids=["64", "1024", "erew"]
)
def test_clients_that_pause_before_they_read_are_not_cut(ours, settings):
    """Every client asks for 9 MB and reads nothing for a while, as one that collects garbage does."""
    clients, failed = 20, []

    def read(wire):
        try:
            for number in range(KEYS):
                wire.expect(shown(number))
            wire.expect(END)
        except (AssertionError, OSError) as error:
            failed.append(error)

    with Server(*settings) as server:
        fill(server)
        wires = [server.wire() for _ in range(clients)]
        for wire in wires:
            wire.send(b"get " + b" ".join(b"k%d" % number for number in range(KEYS)) + b"\r\n")
        time.sleep(1)
        readers = [threading.Thread(target=read, args=(wire,)) for wire in wires]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        for wire in wires:
            wire.close()
        assert not failed, f"{len(failed)} of {clients}: {failed[0]!r}"
        assert server.stats()["response_obj_oom"] == "0"


def test_clients_that_wait_in_one_value_are_not_cut(ours):
    """Many ask for one large value until the kernel's buffers are full, and read nothing."""
    clients, size = 300, 100_000
    with Server("-m", 64) as server, server.wire() as wire:
        wire.exchange(b"set large 0 0 %d\r\n" % size + bytes(size) + b"\r\n", STORED)
        readers = []
        for _ in range(clients):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(server.address)
            reader.sendall(b"get large\r\n" * 84)
            readers.append(reader)
        for number in range(5):
            time.sleep(0.2)
            wire.exchange(b"set small 0 0 1\r\n%d\r\n" % number, STORED)
        own = server.stats("glimmer")
        assert (own["stalled_kicks"], own["values_refused"]) == ("0", "0")
        assert int(server.stats()["curr_connections"]) > clients
        for reader in readers:
            reader.close()


def test_values_of_medium_size_are_neither_sent_nor_read_quickly(ours):
    """Half of many clients send most of a value and pause, the others ask for such values and read none of them. What they
    hold in buffers would not fit into the memory for these: it stays in the table."""
    clients, size = 100, 16_000
    with Server("-m", 64) as server, server.wire() as wire:
        wire.exchange(b"set medium 0 0 %d\r\n" % size + b"m" * size + b"\r\n", STORED)
        senders, readers = [], []
        for number in range(clients):
            sender, reader = server.wire(), server.wire()
            sender.send(b"set k%d 0 0 %d\r\n" % (number, size) + b"%04d" % number * (size // 8))
            reader.send(b"get medium\r\n" * 500)
            senders.append(sender)
            readers.append(reader)
        time.sleep(1)
        own = server.stats("glimmer")
        assert (own["stalled_kicks"], own["values_refused"]) == ("0", "0")
        for number, sender in enumerate(senders):
            sender.send(b"%04d" % number * (size // 8) + b"\r\n")
            sender.expect(STORED)
        for number in range(clients):
            value = b"%04d" % number * (size // 4)
            wire.exchange(b"get k%d\r\n" % number, b"VALUE k%d 0 %d\r\n" % (number, size) + value + b"\r\nEND\r\n")
        for reader in readers[:10]:
            reader.expect((b"VALUE medium 0 %d\r\n" % size + b"m" * size + b"\r\nEND\r\n") * 500)
        for connection in senders + readers:
            connection.close()


def test_values_that_are_stored_again_meanwhile_are_not_mixed(ours):
    """What a slow client is sent is one value, although others have been stored in its place since."""
    with Server("-m", 64) as server:
        fill(server)
        with server.wire() as slow, server.wire() as other:
            slow.send(b"get " + b" ".join(b"k%d" % number for number in range(KEYS)) + b"\r\n")
            time.sleep(0.5)
            # More than the log holds: its head comes round.
            for number in range(100):
                data = b"x" * VALUE_BYTES
                other.exchange(b"set n%d 0 0 %d\r\n" % (number, VALUE_BYTES) + data + b"\r\n", STORED)
            line = slow.line()
            while line != END:
                number = int(line.split()[1][1:])
                slow.expect(bytes([number]) * VALUE_BYTES + b"\r\n")
                line = slow.line()


def test_a_line_of_keys_that_is_sent_before_anything_is_read(ours):
    """A client that writes 5 MB of keys at once, and only then reads what they have."""
    with Server("-m", 1024) as server, server.wire() as wire:
        wire.exchange(b"set %s 0 0 400\r\n" % (b"k" * 20) + bytes(400) + b"\r\n", STORED)
        keys = 5_000_000 // 21
        wire.socket.settimeout(PATIENCE_S)
        wire.send(b"get" + (b" " + b"k" * 20) * keys + b"\r\n")
        reply = b"VALUE %s 0 400\r\n" % (b"k" * 20) + bytes(400) + b"\r\n"
        for _ in range(keys // 1000):
            wire.expect(reply * 1000)
        wire.expect(reply * (keys % 1000) + END)


def test_a_client_that_takes_a_reply_slowly_is_not_idle(ours):
    """8 MB at some 1.5 MB a second: the kernel's buffers take the reply with longer pauses than one may idle for."""
    size = 8 << 20
    with Server("-m", 256, "-I", "10m", "-o", "idle_timeout=1") as server, server.wire() as wire:
        wire.exchange(b"set large 0 0 %d\r\n" % size + bytes(size) + b"\r\n", STORED)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        wire.send(b"get large\r\n")
        time.sleep(3)
        wire.expect(b"VALUE large 0 %d\r\n" % size)
        wire.expect(bytes(size) + b"\r\n" + END)
        assert server.stats()["idle_kicks"] == "0"

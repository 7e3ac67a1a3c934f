"""What is done to a server before its statistics are read, in round numbers."""

import socket

from stand import ADDRESS, PATIENCE_S

SETS, HITS, MISSES, DELETES = 120, 300, 70, 20
VALUE = b"x" * 1000


def exchange(wire, request, end):
    wire.sendall(request)
    reply = b""
    while not reply.endswith(end):
        data = wire.recv(1 << 16)
        if not data:
            raise OSError("the server has closed the connection")
        reply += data


def load():
    with socket.create_connection(ADDRESS, timeout=PATIENCE_S) as wire:
        for number in range(SETS):
            exchange(wire, b"set key-%d 0 0 %d\r\n%s\r\n" % (number, len(VALUE), VALUE), b"STORED\r\n")
        for number in range(HITS):
            exchange(wire, b"get key-%d\r\n" % (number % SETS), b"END\r\n")
        for number in range(MISSES):
            exchange(wire, b"get none-%d\r\n" % number, b"END\r\n")
        for number in range(DELETES):
            exchange(wire, b"delete key-%d\r\n" % number, b"DELETED\r\n")

"""Prints a port of 127.0.0.1 that answers no attempt to connect, until this program ends."""

import signal
import socket

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
# No connection is ever accepted, so the queue stays full and the kernel drops further attempts.
waiting = [socket.socket() for _ in range(4)]
for client in waiting:
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
print(listener.getsockname()[1], flush=True)
signal.pause()

"""The native client over three servers: the client itself places keys (rendezvous hashing), is its own fail-over, and sends each request
in a datagram to the core that owns the key."""

import glimmer

# Servers with --native-port 11211, and so on: datagrams and connections have ports of their own.
SERVERS = ["127.0.0.1:11211", "127.0.0.1:11212", "127.0.0.1:11213"]


def client(servers=SERVERS):
    members = []
    for server in servers:
        host, port = server.rsplit(":", 1)
        members.append((host, int(port), int(port), 1))
    return glimmer.Client.connect_to_all(
        members,
        "rendezvous",
        # Seconds: above the slowest answer of a server that is well.
        deadline=0.25,
        # A server that fails twice in a row leaves, and is asked again after two seconds; its keys go to the others meanwhile.
        away_after=2,
        retry=2.0,
        eject=True,
    )

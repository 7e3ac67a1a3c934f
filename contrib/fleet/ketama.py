"""libmemcached's ketama over three servers, by pylibmc. PHP's memcached extension takes the same settings."""

import pylibmc

SERVERS = ["127.0.0.1:11211", "127.0.0.1:11212", "127.0.0.1:11213"]


def client(servers=SERVERS):
    return pylibmc.Client(
        servers,
        behaviors={
            "ketama": True,
            "tcp_nodelay": True,
            # Milliseconds: above the slowest answer of a server that is well.
            "connect_timeout": 250,
            "_poll_timeout": 250,
            # A server that fails leaves for this many seconds; its keys go to the others meanwhile.
            "remove_failed": 1,
            "dead_timeout": 2,
            "retry_timeout": 1,
        },
    )

"""pymemcache's HashClient over three servers: the client itself places keys (rendezvous hashing), and is its own fail-over."""

from pymemcache.client.hash import HashClient

SERVERS = ["127.0.0.1:11211", "127.0.0.1:11212", "127.0.0.1:11213"]


def client(servers=SERVERS):
    return HashClient(
        servers,
        # Seconds: above the slowest answer of a server that is well.
        connect_timeout=0.25,
        timeout=0.25,
        # A server that fails twice, half a second apart, leaves for two seconds; its keys go to the others meanwhile.
        retry_attempts=1,
        retry_timeout=0.5,
        dead_timeout=2,
        no_delay=True,
    )

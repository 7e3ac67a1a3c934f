"""Stores, reads and counts with pymemcache.

Run it: pip install pymemcache && python3 examples/python/greeting.py 127.0.0.1:11211
Over TLS, with the certificate of the server's authority: python3 examples/python/greeting.py cache.example:11211 ca.pem
"""

import ssl
import sys

from pymemcache.client.base import Client

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:11211"
tls = ssl.create_default_context(cafile=sys.argv[2]) if len(sys.argv) > 2 else None
client = Client(address, tls_context=tls)

client.set("greeting", "hello", expire=60)
print("greeting:", client.get("greeting").decode())

client.set("visits", "41")
print("visits:", client.incr("visits", 1))

both = client.get_many(["greeting", "visits"])
print("together:", both["greeting"].decode(), both["visits"].decode())

client.close()

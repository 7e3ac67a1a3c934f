"""Stores, reads and counts with pymemcache.

Run it: pip install pymemcache && python3 examples/python/greeting.py 127.0.0.1:11211
"""

import sys

from pymemcache.client.base import Client

client = Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:11211")

client.set("greeting", "hello", expire=60)
print("greeting:", client.get("greeting").decode())

client.set("visits", "41")
print("visits:", client.incr("visits", 1))

both = client.get_many(["greeting", "visits"])
print("together:", both["greeting"].decode(), both["visits"].decode())

client.close()

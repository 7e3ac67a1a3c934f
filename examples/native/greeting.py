"""Stores, reads and counts with the native client.

Run it: pip install ./crates/client-py && python3 examples/native/greeting.py 127.0.0.1 11300
The server needs a native port: glimmer serve --native-port 11300
"""

import sys

import glimmer

host, native_port = sys.argv[1:] or ("127.0.0.1", "11300")

with glimmer.Client(host, int(native_port)) as client:
    client.put("greeting", b"hello", expiry=60)
    print("greeting:", client.get("greeting").decode())

    client.put("visits", b"41")
    print("visits:", client.increment("visits"))

    both = client.get_many(["greeting", "visits"])
    print("together:", both["greeting"].decode(), both["visits"].decode())

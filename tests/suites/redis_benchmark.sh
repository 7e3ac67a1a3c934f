#!/bin/bash
# redis-benchmark, against the server at $HOST and $PORT: each test ends, and without an error.
for options in "-t ping_inline" "-t ping_mbulk" "-t set,get" "-t incr" "-t mset" "-t get -P 32" "-t set -P 16 -d 5000"; do
    said=$(redis-benchmark -h "$HOST" -p "$PORT" -n 5000 -c 20 -q $options 2>&1 | tr '\r' '\n')
    case $said in
        *[Ee]rror* | *WARNING*) echo "not ok $options" ;;
        *"requests per second"*) echo "ok $options" ;;
        *) echo "not ok $options" ;;
    esac
done

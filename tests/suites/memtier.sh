#!/usr/bin/env bash
# memtier_benchmark against the server at $HOST and $PORT: each load has to end without an error, with the hits that its keys allow.
set -u
load() {
    local name=$1
    shift
    if memtier_benchmark -s "$HOST" -p "$PORT" --hide-histogram -t 2 -c 10 -n 2000 --key-maximum 1000 "$@" > memtier.log 2>&1 &&
        ! grep -qiE 'error|mismatch' memtier.log; then
        echo "ok $name"
    else
        tail -5 memtier.log >&2
        echo "not ok $name"
    fi
}
for protocol in memcache_text memcache_binary; do
    load "$protocol: stores" -P $protocol --ratio 1:0 --key-pattern P:P
    load "$protocol: reads and stores" -P $protocol --ratio 1:10
    load "$protocol: pipelined" -P $protocol --ratio 1:10 --pipeline 16
    load "$protocol: large values" -P $protocol --ratio 1:1 --data-size 100000 -n 200
done

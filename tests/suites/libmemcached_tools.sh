#!/usr/bin/env bash
# libmemcached's commands and load generators against the server at $HOST and $PORT, text and binary protocol.
set -u
SERVERS=--servers=$HOST:$PORT
rm -rf files
mkdir files
head -c 300000 /dev/urandom > files/large
printf 'a line\r\nEND\r\n' > files/lines

# check NAME COMMAND...: it succeeds.
check() {
    local name=$1
    shift
    if "$@" > command.log 2>&1; then
        echo "ok $name"
    else
        cat command.log >&2
        echo "not ok $name"
    fi
}

# What memccat prints, which ends the value with a line break, is the file.
holds() { memccat "$SERVERS" "${@:2}" "${1##*/}" | cmp - <(cat "$1"; echo); }
lists() { memcdump "$SERVERS" "$@" | sort | cmp - <(printf '%s\n' large lines); }
fails() { ! "$@"; }
tells() { memcstat "$SERVERS" | grep -q "curr_items: 2"; }

# Every value that was read is the one stored, and none is missing.
verified() {
    memcaslap "$SERVERS" --threads=2 --concurrency=16 --execute_number=20000 --win_size=1k --verify=1.0 "$@" > load.log 2>&1 &&
        grep -q '^verify_failed: 0$' load.log && grep -q '^get_misses: 0$' load.log || { cat load.log; return 1; }
}

for protocol in text binary; do
    binary=$(if [ $protocol = binary ]; then echo --binary; fi)
    check "$protocol: memcflush" memcflush "$SERVERS" $binary
    check "$protocol: memccp" memccp "$SERVERS" $binary files/large files/lines
    if [ $protocol = text ]; then
        check "text: memcping" memcping "$SERVERS"
        check "text: memcstat" tells
        check "text: memcdump" lists
    fi
    check "$protocol: memccat of a large value" holds files/large $binary
    check "$protocol: memccat of a value with line breaks" holds files/lines $binary
    check "$protocol: memcexist" memcexist "$SERVERS" $binary large
    check "$protocol: memcexist of nothing" fails memcexist "$SERVERS" $binary none
    check "$protocol: memctouch" memctouch "$SERVERS" $binary --expire=100 large
    check "$protocol: memcrm" memcrm "$SERVERS" $binary large
    check "$protocol: memccat of nothing" fails memccat "$SERVERS" $binary large
    for test in set get mget; do
        check "$protocol: memcslap $test" memcslap "$SERVERS" $binary --test=$test --concurrency=8 --execute-number=1000
    done
    memcflush "$SERVERS"
    check "$protocol: memcaslap, every value verified" verified $binary
    check "$protocol: memcaslap, multi-get" verified $binary --division=20
    check "$protocol: memcaslap, large values" verified $binary --fixed_size=20000 --threads=1 --concurrency=1 --execute_number=4000
done

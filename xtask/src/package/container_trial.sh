# Runs what a container's file system has as a container does. Before this stand the root, and what
# the image says.
set -eu

say() { echo "trial: $*"; }

fail() {
    say "FAILED: $*"
    [ -z "${server:-}" ] || kill -KILL "$server" && wait "$server" 2> /dev/null || :
    exit 1
}

# A control group of memory for this process, with this limit. Version 2, or version 1.
limit_memory() {
    for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        group=$top/glimmer-trial
        mkdir "$group" 2> /dev/null || [ -d "$group" ] || continue
        for file in memory.max memory.limit_in_bytes; do
            if [ -e "$group/$file" ] && echo "$1" > "$group/$file"; then return 0; fi
        done
        rmdir "$group"
    done
    return 1
}

# Becomes this program of the container, within the control group.
enter() {
    [ -z "$group" ] || sh -c 'echo "$PPID" > "$0/cgroup.procs"' "$group"
    eval "exec env -i $variables $(command -v chroot) --userspec=$user --groups= $root \"\$@\""
}

ask() {
    python3 -c '
import socket, sys
with socket.create_connection(("127.0.0.1", 11211), 2) as server:
    server.settimeout(2)
    server.sendall(sys.argv[1].encode() + b"\r\n")
    reply = b""
    while not reply.endswith((b"END\r\n", b"STORED\r\n", b"OK\r\n")) and not reply.startswith(b"VERSION"):
        reply += server.recv(65536)
print(reply.decode())' "$1"
}

start() {
    enter "$@" &
    server=$!
    for _ in $(seq 100); do
        if ask version > /dev/null 2>&1; then return; fi
        kill -0 "$server" 2> /dev/null || fail "the server has ended"
        sleep 0.1
    done
    fail "no answer"
}

eval "set -- $command"
mkdir -p "$root/proc" "$root/sys" "$root/dev"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
[ "$(find "$root" -xdev -type f | wc -l)" = 1 ] || fail "there is more than the program"
if ldd "$root/glimmer" 2> /dev/null | grep -q '=>'; then fail "it is not static"; fi

group=
trap '[ -z "$group" ] || rmdir "$group"' EXIT
limit_memory $((512 << 20)) || say "no control group can be made here: the limit of memory is not tried"
start "$@"
if [ -n "$group" ]; then
    ask "stats settings" | grep -q "^STAT maxbytes $((384 << 20))" || fail "-m is not 75% of 512 MiB"
fi
ask "$(printf 'set key 0 0 5\r\nvalue')" | grep -q STORED || fail "not stored"
ask "get key" | grep -q value || fail "not found"
grep -q "^Uid:[[:space:]]*${user%:*}[[:space:]]" "/proc/$server/status" || fail "it runs as another user"
grep -q "^CapEff:[[:space:]]*0*$" "/proc/$server/status" || fail "it has rights"
(eval "enter $health") | grep -q . || fail "it says that it is ill"
say "serves as user $user with a root that cannot be written to, and is healthy"
kill -STOP "$server"
if (eval "enter $health --timeout 1") 2> /dev/null; then fail "a server that hangs is called healthy"; fi
kill -CONT "$server"
kill "$server"
wait "$server" || fail "the server ended with status $?"
say "stopped"

if [ -n "$group" ]; then
    # More than the container may take ends the start, and not the server later.
    if (enter /glimmer serve -m 1024) 2> /tmp/refused; then fail "-m 1024 fits into 512 MiB"; fi
    grep -q "control group" /tmp/refused || fail "it says $(cat /tmp/refused)"
    say "refuses more memory than the container has"
fi

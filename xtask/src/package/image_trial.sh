# The image of a container, built by podman and run as deploying.md shows it. Before this stands the
# folder with what the image is built from.
set -eu

say() { echo "trial: $*"; }

fail() { say "FAILED: $*"; exit 1; }

# Without these, podman asks for more than a container that it runs in may have.
limits="--ulimit nofile=4096:4096 --ulimit nproc=4096:4096"

ask() {
    python3 -c '
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as server:
    server.sendall(sys.argv[2].encode() + b"\r\nquit\r\n")
    sys.stdout.write(server.makefile().read())' "$port" "$1"
}

podman build --quiet --format docker --tag glimmer-trial "$context" > /dev/null
container=$(podman run --detach $limits --read-only --cap-drop all --memory 512m \
    --publish 127.0.0.1::11211 glimmer-trial)
trap 'podman rm --force "$container" > /dev/null 2>&1; podman rmi glimmer-trial > /dev/null' EXIT
port=$(podman port "$container" 11211/tcp | sed 's/.*://')
for _ in $(seq 100); do
    if podman healthcheck run "$container" > /dev/null 2>&1; then break; fi
    sleep 0.1
done
podman healthcheck run "$container" || fail "it says that it is ill"
ask "stats settings" | grep -q "^STAT maxbytes $((384 << 20))" || fail "-m is not 75% of 512 MiB"
ask "$(printf 'set key 0 0 5\r\nvalue\r\nget key')" | grep -q '^value' || fail "not found"
podman stop "$container" > /dev/null 2>&1
[ "$(podman inspect "$container" --format '{{.State.ExitCode}}')" = 0 ] || fail "it was killed"
if podman run --rm $limits --memory 512m glimmer-trial serve -m 1024 > "$context/refused" 2>&1; then
    fail "-m 1024 fits into 512 MiB"
fi
grep -q "control group" "$context/refused" || fail "it says $(cat "$context/refused")"
say "podman builds the image and runs it, healthy, within 512 MiB"

#!/bin/sh
# Tries `glimmer serve --packet-transport dpdk:...` out on a pair of virtual interfaces in two network
# namespaces, and removes them at the end. Needs root, `ip` and `ethtool`, and takes the server's
# program as its argument, built with the feature `dpdk`: `glimmer` of the search path if there is
# none. The kernel has another address at the same interface, for TCP.
set -eu
glimmer=${1:-glimmer}
server=glimmer-try-$$-server
client=glimmer-try-$$-client
pid=

clean_up() {
	if [ -n "$pid" ]; then
		kill "$pid" && wait "$pid" || true
	fi
	ip netns delete "$server" 2>/dev/null || true
	ip netns delete "$client" 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 1' INT TERM

ip netns add "$server"
ip netns add "$client"
ip -n "$server" link add veth0 type veth peer name veth0 netns "$client"
ip -n "$server" address add 10.99.0.1/24 dev veth0
ip -n "$client" address add 10.99.0.2/24 dev veth0
ip netns exec "$client" ethtool -K veth0 tx off >/dev/null
for namespace in "$server" "$client"; do
	ip -n "$namespace" link set lo up
	ip -n "$namespace" link set veth0 up
done

ip netns exec "$server" "$glimmer" serve -m 64 -t 1 -U 11211 --native-port 11311 --packet-transport \
	"dpdk:ip=10.99.0.3/24 --no-huge -m 128 --no-pci --vdev=net_af_packet0,iface=veth0" &
pid=$!

# Asks the server over UDP: the header of a datagram, and a request. Prints the reply.
ask() {
	ip netns exec "$client" bash -c 'exec 3<>/dev/udp/10.99.0.3/11211
		printf "\0\1\0\0\0\1\0\0$1\r\n" | dd bs=64k iflag=fullblock status=none >&3
		timeout 1 head -c 8 <&3 >/dev/null
		true' ask "$1"
}
tries=0
until ip netns exec "$client" bash -c 'exec 3<>/dev/tcp/10.99.0.1/11211' 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || exit 1
	sleep 0.1
done
for number in 1 2 3 4 5; do
	ask "set key$number 0 0 5\r\nhello"
	ask "get key$number"
done
echo "stats packets:"
ip netns exec "$client" bash -c 'exec 3<>/dev/tcp/10.99.0.1/11211
	printf "get key5\r\nstats packets\r\nquit\r\n" >&3
	cat <&3'

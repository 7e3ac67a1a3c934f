# What try-xdp.sh and try-dpdk.sh share: a pair of virtual interfaces in two network namespaces, which
# are removed at the end, and a trial of a server at one end. Both scripts read this one, with the
# server's program as their argument.
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
for namespace in "$server" "$client"; do
	ip -n "$namespace" link set lo up
	ip -n "$namespace" link set veth0 up
done

# Asks the server over UDP: the header of a datagram, and a request. Prints the reply.
ask() {
	ip netns exec "$client" bash -c 'exec 3<>"/dev/udp/$1/11211"
		printf "\0\1\0\0\0\1\0\0$2\r\n" | dd bs=64k iflag=fullblock status=none >&3
		timeout 1 head -c 8 <&3 >/dev/null
		true' ask "$udp" "$1"
}

# Starts a server with these arguments, which takes datagrams at the first of them, and asks it.
try() {
	udp=$1
	shift
	ip netns exec "$server" "$glimmer" serve -m 64 -t 1 -U 11211 --native-port 11311 "$@" &
	pid=$!
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
}

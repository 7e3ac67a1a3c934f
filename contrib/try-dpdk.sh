#!/bin/sh
# Tries `glimmer serve --packet-transport dpdk:...` out on a pair of virtual interfaces in two network
# namespaces, and removes them at the end. Needs root, `ip` and `ethtool`, and takes the server's
# program as its argument, built with the feature `dpdk`: `glimmer` of the search path if there is
# none. The kernel has another address at the same interface, for TCP.
set -eu
. "$(dirname "$0")/try-packets.sh"

ip netns exec "$client" ethtool -K veth0 tx off >/dev/null
try 10.99.0.3 --packet-transport \
	"dpdk:ip=10.99.0.3/24 --no-huge -m 128 --no-pci --vdev=net_af_packet0,iface=veth0"

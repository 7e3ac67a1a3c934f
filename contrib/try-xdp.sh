#!/bin/sh
# Tries `glimmer serve --packet-transport xdp:IF` out on a pair of virtual interfaces in two network
# namespaces, and removes them at the end. Needs root, `ip` and `ethtool`, and takes the server's
# program as its argument: `glimmer` of the search path if there is none.
set -eu
. "$(dirname "$0")/try-packets.sh"

ip netns exec "$server" ethtool -K veth0 rxvlan off
ip netns exec "$client" ethtool -K veth0 txvlan off tx-vlan-stag-hw-insert off
try 10.99.0.1 -l 10.99.0.1 --packet-transport xdp:veth0

#!/bin/sh
# Installs header, shared and static library and the pkg-config file: install.sh PREFIX [BUILT]
#
# BUILT is a folder with the libraries; without it they are built here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?"usage: install.sh PREFIX [BUILT]"}
built=${2:-}
if [ -z "$built" ]; then
    cargo build --release --manifest-path "$here/Cargo.toml"
    built=${CARGO_TARGET_DIR:-$here/../../target}/release
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
install -D -m 644 "$here/include/glimmer.h" "$prefix/include/glimmer.h"
install -D -m 755 "$built/libglimmerclient.so" "$prefix/lib/libglimmerclient.so"
install -D -m 644 "$built/libglimmerclient.a" "$prefix/lib/libglimmerclient.a"
mkdir -p "$prefix/lib/pkgconfig"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/glimmerclient.pc.in" >"$prefix/lib/pkgconfig/glimmerclient.pc"

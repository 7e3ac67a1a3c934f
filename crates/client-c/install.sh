#!/bin/sh
# Installs the header, the shared and the static library, and the pkg-config file: install.sh PREFIX [BUILT]
#
# BUILT is a folder with the libraries; without it they are built here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?"usage: install.sh PREFIX [BUILT]"}
built=${2:-}
if [ -z "$built" ]; then
    # This profile unwinds, so that a bug in the library is an error and not the end of the process.
    cargo build --profile library --manifest-path "$here/Cargo.toml"
    built=${CARGO_TARGET_DIR:-$here/../../target}/library
fi
mkdir -p "$prefix/lib/pkgconfig"
prefix=$(cd "$prefix" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
interface=$(sed -n 's/^const INTERFACE: u32 = \([0-9]*\);/\1/p' "$here/build.rs")

install -D -m 644 "$here/include/glimmer.h" "$prefix/include/glimmer.h"
library=libglimmerclient.so
install -D -m 755 "$built/$library" "$prefix/lib/$library.$version"
ln -sf "$library.$version" "$prefix/lib/$library.$interface"
ln -sf "$library.$interface" "$prefix/lib/$library"
install -D -m 644 "$built/libglimmerclient.a" "$prefix/lib/libglimmerclient.a"
if command -v strip >/dev/null; then
    strip --strip-unneeded "$prefix/lib/$library.$version"
    strip --strip-debug "$prefix/lib/libglimmerclient.a"
fi
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/glimmerclient.pc.in" >"$prefix/lib/pkgconfig/glimmerclient.pc"

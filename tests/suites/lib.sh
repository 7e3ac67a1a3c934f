# Functions for the commands of suites.toml. A `fetch` command prints a version in its last line; all else goes to stderr.

# An environment of Python's in `venv`, with these packages.
venv() {
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check "$@" >&2
}

# The version of an installed package.
version_of() {
    venv/bin/python -c "import importlib.metadata as m; print(m.version('$1'))"
}

# The source of a package on PyPI, in `src`.
sdist() {
    venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest . "$1" >&2
    mkdir src
    tar xzf ./*.tar.gz --strip-components 1 -C src
}

# A Debian source package, in `src`.
debian_source() {
    if ! grep -rqs '^Types:.*deb-src\|^deb-src' /etc/apt/sources.list /etc/apt/sources.list.d; then
        echo "Debian's source packages are not among apt's sources (deb-src)" >&2
        return 1
    fi
    if ! apt-get source --quiet --quiet --download-only "$1" >&2; then
        echo "the mirror that apt asks does not have the source package $1" >&2
        return 1
    fi
    dpkg-source --no-check --extract ./*.dsc src >&2
}

# The source of a package on npm, in `src`, with what it depends on.
npm_package() {
    npm pack --silent "$1" >&2
    mkdir src
    tar xzf ./*.tgz --strip-components 1 -C src
    (cd src && npm install --silent --no-audit --no-fund --omit=dev --ignore-scripts >&2)
}

# Replaces memcached's port in a copy of `src` by that of the server; the copy is `run`.
with_port() {
    rm -rf run
    cp -r src run
    grep -rlE '\b11211\b' run --include="$1" | xargs -r sed -i -E "s/\b11211\b/$PORT/g"
}

# Starts another server of the same kind, until the end; its port is ANOTHER_PORT.
another_server() {
    ANOTHER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    memcached -l 127.0.0.1 -p "$ANOTHER_PORT" &
    SERVERS="${SERVERS:-} $!"
    trap 'kill $SERVERS' EXIT
    until (: < "/dev/tcp/127.0.0.1/$ANOTHER_PORT") 2> /dev/null; do sleep 0.05; done
}

# Runs a program that prints "ok NAME" for each check and ends at the first that fails.
checks() {
    "$@" || echo "not ok the check after those that are listed"
}

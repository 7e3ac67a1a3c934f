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

# apt with the sources of a release of Debian, which the machine's own lists are kept apart from.
apt_of() {
    local release=$1 apt=$PWD/apt uri option
    shift
    if ! uri=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 2> /dev/null | grep -v security | head -1) || [ -z "$uri" ]; then
        echo "this machine has no sources of Debian's packages" >&2
        return 1
    fi
    local options=(-q -q)
    for option in "Etc=$apt/etc" "State=$apt" "State::status=$apt/status" "Cache=$apt/cache"; do
        options+=(-o "Dir::$option")
    done
    if [ ! -e "$apt" ]; then
        mkdir -p "$apt"/{lists/partial,cache/archives/partial,etc/apt.conf.d,etc/preferences.d,etc/sources.list.d}
        touch "$apt/status"
        local signed=[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]
        printf 'deb %s\ndeb-src %s\n' "$signed $uri $release main" "$signed $uri $release main" > "$apt/etc/sources.list"
        apt-get "${options[@]}" update >&2
    fi
    apt-get "${options[@]}" "$@" >&2
}

# A source package of a release of Debian, in `src`, without Debian's changes.
debian_source() {
    if ! apt_of "$1" source --download-only --tar-only "$2"; then
        echo "the source package $2 of Debian $1 is not on the mirror that apt asks" >&2
        return 1
    fi
    mkdir src
    tar xf ./*.orig.tar.* --strip-components 1 -C src
}

# A package of a release of Debian, in `package`, not installed.
debian_package() {
    apt_of "$1" download "$2"
    dpkg-deb --extract ./*.deb package
}

# Builds the extension of PHP in `src`; its name and its flags are given.
php_extension() {
    (cd src && phpize && ./configure "${@:2}" && make) > build.log 2>&1 || { tail -3 build.log >&2; return 1; }
    php -n -d extension="$PWD/src/modules/$1.so" -r "echo phpversion('$1'), \"\\n\";"
}

# Runs PHP's own tests with the extension that was built. The server's address has been entered into them.
phpt() {
    NO_INTERACTION=1 TEST_PHP_EXECUTABLE=$(command -v php) \
        php run-tests.php -q --no-color --no-progress -g FAIL,PASS,SKIP -n -d extension="$PWD/modules/$1.so" tests
}

# The source of a package on npm, in `src`, with what it depends on.
npm_package() {
    npm pack --silent "$1" >&2
    mkdir src
    tar xzf ./*.tgz --strip-components 1 -C src
    (cd src && npm install --silent --no-audit --no-fund --omit=dev --ignore-scripts >&2)
}

# A copy of `src`, to be changed: `run`.
fresh_copy() {
    rm -rf run
    cp -r src run
}

# Replaces memcached's port in a copy of `src` by that of the server.
with_port() {
    fresh_copy
    grep -rlE '\b11211\b' run --include="$1" | xargs -r sed -i -E "s/\b11211\b/$PORT/g"
}

# A port that no one listens on.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Ends a process when the suite has ended.
until_the_end() {
    ENDED_LAST="${ENDED_LAST:-} $1"
    trap 'kill $ENDED_LAST' EXIT
}

# Starts another server of the same kind, at a given port or any, until the end. ANOTHER_PORT is its port.
another_server() {
    ANOTHER_PORT=${1:-$(free_port)}
    memcached -l 127.0.0.1 -p "$ANOTHER_PORT" &
    until_the_end $!
    until (: < "/dev/tcp/127.0.0.1/$ANOTHER_PORT") 2> /dev/null; do sleep 0.05; done
}

# A port of this machine that answers no attempt to connect, until the end: SILENT_PORT. Suites name addresses of other networks for it.
silent_port() {
    rm -f silent_port
    python3 "$SUITES/silent_port.py" > silent_port &
    until_the_end $!
    until [ -s silent_port ]; do sleep 0.05; done
    SILENT_PORT=$(cat silent_port)
}

# Runs a program that prints "ok NAME" for each check and ends at the first that fails.
checks() {
    "$@" || echo "not ok the check after those that are listed"
}

# What the trials of packages begin with.
set -eu

# What dpkg and rpm keep does not count.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
        -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /root/.rpmdb -o -path /var/log \
        -o -path /var/cache \) -prune -o -print | sort
}

say() { echo "trial: $*"; }

fail() { say "FAILED: $*"; exit 1; }

# Sends a line to the server, and prints the reply up to a line that ends it.
ask() {
    perl -MIO::Socket::INET -e '
        my $server = IO::Socket::INET->new("127.0.0.1:11211") or die "no server: $!\n";
        print $server "$ARGV[0]\r\n";
        while (my $line = <$server>) { print $line; last if $line =~ /^(END|STORED|OK|ERROR|VERSION)/ }' "$1"
}

# Runs the command of the unit, as a user with no rights.
start() {
    # shellcheck disable=SC2046
    setpriv --reuid=65534 --regid=65534 --clear-groups \
        $(sed -n 's/^ExecStart=//p' /lib/systemd/system/glimmer.service /usr/lib/systemd/system/glimmer.service | head -1) &
    server=$!
    for _ in $(seq 100); do
        if ask version > /dev/null 2>&1; then return; fi
        kill -0 "$server" 2> /dev/null || fail "the server has ended"
        sleep 0.1
    done
    fail "no answer"
}

stop() {
    kill "$server"
    wait "$server" || fail "the server ended with status $?"
}

maxbytes() { ask "stats settings" | sed -n 's/^STAT maxbytes \([0-9]*\).*/\1/p'; }

# Every part of the package is there, and the server serves.
use_package() {
    say "installed: $(glimmer --version)"
    for file in "$@" /usr/share/bash-completion/completions/glimmer \
        /usr/share/fish/vendor_completions.d/glimmer.fish /usr/lib/systemd/system/glimmer.socket; do
        [ -e "$file" ] || fail "$file is not there"
    done
    glimmer config check /etc/glimmer/glimmer.toml
    glimmer top --version > /dev/null
    start
    ask "$(printf 'set key 0 0 5\r\nvalue')" | grep -q STORED || fail "not stored"
    ask "get key" | grep -q value || fail "not found"
    [ "$(maxbytes)" = $((64 << 20)) ] || fail "maxbytes is $(maxbytes)"
    glimmer health > /dev/null || fail "it says that it is ill"
    stop
    say "serves"
}

# Settings of the operator's, and items that are to survive all that follows.
use_settings() {
    sed -i 's/^memory-limit = .*/memory-limit = 96/' /etc/glimmer/glimmer.toml
    printf 'memory-file = "/dev/shm/items"\nsnapshot = "/tmp/items"\n' >> /etc/glimmer/glimmer.toml
    glimmer config check /etc/glimmer/glimmer.toml
    start
    ask "$(printf 'set kept 0 0 5\r\nvalue')" | grep -q STORED || fail "not stored"
    stop
}

is_kept() { ask "get kept" | grep -q value || fail "the item is gone $1"; }

# The operator's settings are kept, and served by, and so are the items.
use_upgraded() {
    grep -q '^memory-limit = 96' /etc/glimmer/glimmer.toml || fail "the configuration is lost"
    start
    [ "$(maxbytes)" = $((96 << 20)) ] || fail "maxbytes is $(maxbytes)"
    is_kept "after the upgrade"
    kill -KILL "$server"
    wait "$server" || true
    start
    is_kept "after kill -9"
    stop
    # The memory of a machine that was down is empty.
    rm /dev/shm/items
    start
    is_kept "after the machine was down"
    stop
    rm /dev/shm/items /tmp/items
    say "upgraded, with its configuration and its items"
}


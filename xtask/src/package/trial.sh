# What the trials of packages begin with.
set -eu

# What outlasts a machine that was down.
disk=${disk:-/tmp}

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

# Every part of the package is there, these files among them, and the server serves.
use_package() {
    say "installed: $(glimmer --version)"
    for file in "$@" /usr/lib/systemd/system/glimmer.socket; do
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

# Stores items, or reads them and compares: as many MiB as $fill_mib says, 10,000 bytes each.
items() {
    perl -MIO::Socket::INET -e '
        my ($does, $mib) = @ARGV;
        my $server = IO::Socket::INET->new("127.0.0.1:11211") or die "no server: $!\n";
        my $last = int($mib * 1048576 / 10000);
        for (my $from = 0; $from < $last; $from += 100) {
            my @keys = map { sprintf("item-%010d ", $_) } $from .. ($from + 99);
            if ($does eq "store") {
                print $server map { "ms $_ 10000 q\r\n" . $_ x 625 . "\r\n" } @keys;
                print $server "mn\r\n";
                $server->flush;
                my $reply = <$server>;
                $reply eq "MN\r\n" or die "store: $reply";
                next;
            }
            print $server map { "mg $_ v\r\n" } @keys;
            $server->flush;
            for my $key (@keys) {
                my $reply = <$server>;
                $reply eq "VA 10000\r\n" or die "$key: $reply";
                read($server, my $value, 10002) == 10002 or die "$key: half a value\n";
                $value eq $key x 625 . "\r\n" or die "$key: another value\n";
            }
        }' "$1" "$fill_mib"
}

# As an operator does who comes from memcached: its configuration, and what a restart is to keep.
use_settings() {
    memory_mib=$((fill_mib * 5 / 4 + 64))
    printf '%s\n' '# memcached default config file' -d 'logfile /var/log/memcached.log' \
        "-m $memory_mib" '-p 11211' '-u memcache' '-l 127.0.0.1' \
        '-P /var/run/memcached/memcached.pid' > /etc/memcached.conf
    # systemd takes the place of these three.
    glimmer config from-memcached /etc/memcached.conf | grep -vE '^(daemon|user|pidfile) ' \
        > /etc/glimmer/glimmer.toml
    rm /etc/memcached.conf
    printf '%s\n' 'memory-file = "/dev/shm/items"' "snapshot = \"$disk/items\"" \
        >> /etc/glimmer/glimmer.toml
    glimmer config check /etc/glimmer/glimmer.toml
    start
    items store || fail "not stored"
    stop
    say "moved the configuration of a memcached, and stored $fill_mib MiB"
}

are_kept() { items check || fail "items are gone $1"; }

# The operator's settings are kept, and served by, and so are the items.
use_upgraded() {
    grep -q "^memory-limit = $memory_mib" /etc/glimmer/glimmer.toml || fail "the configuration is lost"
    start
    [ "$(maxbytes)" = $((memory_mib << 20)) ] || fail "maxbytes is $(maxbytes)"
    are_kept "after the upgrade"
    kill -KILL "$server"
    wait "$server" || true
    start
    are_kept "after kill -9"
    stop
    # The memory of a machine that was down is empty.
    rm /dev/shm/items
    start
    are_kept "after the machine was down"
    stop
    rm /dev/shm/items "$disk/items"
    say "upgraded, killed and started again, with its configuration and its items"
}

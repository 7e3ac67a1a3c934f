# The trial of packages without a package: what it has is copied, with the programs of the tests.
place() {
    install -m 755 "$programs/glimmer" "$programs/glimmer-top" /usr/bin/
    for unit in service socket; do
        sed 's#/usr/local/bin/#/usr/bin/#' "$repository/contrib/systemd/glimmer.$unit" \
            > "/usr/lib/systemd/system/glimmer.$unit"
    done
    # Settings that are there stay.
    [ -e /etc/glimmer/glimmer.toml ] ||
        install -D -m 644 "$repository/contrib/glimmer.toml" /etc/glimmer/glimmer.toml
}

disk=/dev/shm/disk
mkdir -m 1777 "$disk"
place
use_package
use_settings
place
use_upgraded

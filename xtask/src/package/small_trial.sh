# The trial of packages without a package: what it has is copied, with the programs of the tests.
place() {
    install -m 755 "$programs/glimmer" "$programs/glimmer-top" /usr/bin/
    for unit in service socket; do
        sed 's#/usr/local/bin/#/usr/bin/#' "$repository/contrib/systemd/glimmer.$unit" \
            > "/usr/lib/systemd/system/glimmer.$unit"
    done
    install -D -m 644 "$pages/bash/glimmer.bash" /usr/share/bash-completion/completions/glimmer
    install -D -m 644 "$pages/fish/glimmer.fish" /usr/share/fish/vendor_completions.d/glimmer.fish
    install -D -m 644 "$pages/man1/glimmer-serve.1" /usr/share/man/man1/glimmer-serve.1
    # Settings that are there stay.
    [ -e /etc/glimmer/glimmer.toml ] ||
        install -D -m 644 "$repository/contrib/glimmer.toml" /etc/glimmer/glimmer.toml
}

disk=/dev/shm/disk
mkdir -m 1777 "$disk"
place
use_package /usr/share/man/man1/glimmer-serve.1
use_settings
place
use_upgraded

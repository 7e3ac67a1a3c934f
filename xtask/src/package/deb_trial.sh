# The Debian package: installed, used, upgraded, removed and purged.
files > /tmp/before
dpkg -i /glimmer.deb
use_package /usr/share/man/man1/glimmer-serve.1.gz /usr/share/zsh/vendor-completions/_glimmer \
    /usr/share/bash-completion/completions/glimmer \
    /usr/share/fish/vendor_completions.d/glimmer.fish

use_settings
dpkg -i /glimmer-next.deb < /dev/null
use_upgraded

dpkg --remove glimmer
[ ! -e /usr/bin/glimmer ] || fail "the program stays"
[ -e /etc/glimmer/glimmer.toml ] || fail "the configuration went before the purge"
dpkg --purge glimmer
files > /tmp/after
diff /tmp/before /tmp/after || fail "this is left, or gone"
say "removed and purged: nothing is left"

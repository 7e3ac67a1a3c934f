# The package for RPM: its contents and scriptlets, then installed, used, upgraded and removed. The
# root is Debian's, whose libraries rpm does not know, so that dependencies are looked at apart.
# Folders that a distribution with RPM has.
mkdir -p /usr/share/licenses /usr/share/fish/vendor_completions.d /usr/share/zsh/site-functions
files > /tmp/before
rpm -qp --requires /glimmer.rpm | grep -q '^libc.so.6' || fail "it does not say which library it needs"
rpm -qp --qf '%{NAME} %{VERSION} %{LICENSE}\n' /glimmer.rpm | grep -qx 'glimmer 0.1.0 Apache-2.0' ||
    fail "its name, version or licence is wrong"
[ "$(rpm -qpc /glimmer.rpm)" = /etc/glimmer/glimmer.toml ] || fail "the settings are not marked"
rpm -qpl /glimmer.rpm > /tmp/listed
for scriptlet in postinstall preuninstall postuninstall; do
    rpm -qp --scripts /glimmer.rpm | grep -q "^$scriptlet scriptlet" || fail "no $scriptlet scriptlet"
done
rpm -i --test --nodeps /glimmer.rpm
rpm -i --nodeps /glimmer.rpm
rpm -V --nodeps glimmer || fail "what is installed is not what the package has"
while read -r file; do [ -e "$file" ] || fail "$file is not there"; done < /tmp/listed
use_package /usr/share/man/man1/glimmer-serve.1 /usr/share/zsh/site-functions/_glimmer \
    /usr/share/bash-completion/completions/glimmer \
    /usr/share/fish/vendor_completions.d/glimmer.fish

# As an operator does who wants the service: what was enabled goes with the package.
systemctl enable glimmer.service glimmer.socket
use_settings
rpm -U --nodeps /glimmer-next.rpm
[ -L /etc/systemd/system/multi-user.target.wants/glimmer.service ] || fail "no longer enabled"
use_upgraded

rpm -e glimmer
[ ! -e /usr/bin/glimmer ] || fail "the program stays"
# Settings that were changed stay under another name, as with every package.
[ -e /etc/glimmer/glimmer.toml.rpmsave ] || fail "the operator's settings are gone"
rm -r /etc/glimmer
files > /tmp/after
diff /tmp/before /tmp/after || fail "this is left, or gone"
say "removed: nothing is left but the settings that were changed"

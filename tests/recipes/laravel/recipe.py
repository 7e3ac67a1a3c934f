"""Laravel's cache, locks, rate limits and sessions, of Debian's packages of the framework."""

import re

from recipe import Recipe, printed

PACKAGES = "php-illuminate-cache php-illuminate-session php-illuminate-config php-illuminate-events php-illuminate-filesystem"


class Tried(Recipe):
    needs = (
        (("php", "-r", "exit(extension_loaded('memcached') ? 0 : 1);"), "php-cli php-memcached"),
        (("test", "-e", "/usr/share/php/Illuminate/Session/autoload.php"), PACKAGES),
    )

    def version(self):
        shown = printed("dpkg-query", "--show", "--showformat", "${Version}", "php-illuminate-cache")
        client = printed("php", "-r", "echo phpversion('memcached');")
        return f"Laravel {re.split('[+-]', shown)[0]}, memcached {client}"

    def run(self, stand):
        stand.script("php", self.here / "check.php")

"""WordPress with its object cache, over MariaDB."""

import os
import re
import shutil
import subprocess

from recipe import NotRun, Recipe, printed
from stand import until

PORT = 8080


class Tried(Recipe):
    needs = (
        (("php", "-r", "exit(extension_loaded('memcache') && extension_loaded('mysqli') ? 0 : 1);"), "php-cli php-memcache php-mysql"),
        (("test", "-x", "/usr/sbin/mariadbd"), "mariadb-server-core mariadb-client-core"),
    )

    @property
    def source(self):
        return self.fetched / "package/usr/share/wordpress"

    @property
    def drop_in(self):
        return os.environ.get("OBJECT_CACHE")

    def fetch_once(self, may_install=False):
        if not self.drop_in:
            raise NotRun("the drop-in comes from no package registry: give its file, --object-cache PATH")
        super().fetch_once(may_install)

    def fetch(self):
        self.debian_package("wordpress")

    def version(self):
        found = re.search(r"wp_version = '([\d.]+)'", (self.source / "wp-includes/version.php").read_text())
        drop_in = re.search(r"^Version: (\S+)", open(self.drop_in).read(), re.MULTILINE)
        return f"WordPress {found[1]}, drop-in {drop_in[1]}, memcache {printed('php', '-r', 'echo phpversion(`memcache`);'.replace('`', chr(34)))}"

    def run(self, stand):
        self.database(stand)
        site = stand.folder / "site"
        shutil.copytree(self.source, site, symlinks=True)
        shutil.copy(self.drop_in, site / "wp-content/object-cache.php")
        for name in ("wp-config.php", "install.php", "do.php"):
            shutil.copy(self.here / name, site)
        theme = site / "wp-content/themes/plain"
        theme.mkdir(parents=True)
        (theme / "style.css").write_text("/*\nTheme Name: Plain\n*/\n")
        shutil.copy(self.here / "index.php", theme)
        self.php(stand, "install.php")
        stand.server.flush()
        stand.spawn("php", "-S", f"127.0.0.1:{PORT}", "-t", site, port=PORT)
        self.pages(stand)
        self.failures(stand)

    @staticmethod
    def database(stand):
        data, socket = stand.folder / "database", stand.folder / "socket"
        own = ["--no-defaults", f"--datadir={data}", f"--socket={socket}"]
        line = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(line, check=True, capture_output=True)
        shutil.chown(data, "root") if os.geteuid() == 0 else None
        stand.spawn("/usr/sbin/mariadbd", *own, "--user=root", "--bind-address=127.0.0.1", "--port=3306", port=3306)
        subprocess.run(["mariadb", "--no-defaults", f"--socket={socket}", "-e", "CREATE DATABASE shop"], check=True, capture_output=True)

    @staticmethod
    def php(stand, *line):
        """What a program of the site prints."""
        ran = subprocess.run(["php", *line], cwd=stand.folder / "site", stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"{line[0]}: {ran.stdout[-200:]}{ran.stderr[-200:]}")
        return ran.stdout

    @staticmethod
    def page(stand):
        """The status of the front page, its titles, and how often it asked the database."""
        reply = stand.get(f"http://127.0.0.1:{PORT}/")
        asked = re.search(r"queries: (\d+)", reply.text)
        return reply.status, re.findall(r"<h2>(.*?)</h2>", reply.text), int(asked[1]) if asked else -1

    def pages(self, stand):
        status, titles, cold = self.page(stand)
        stand.equal("the front page", (status, titles), (200, ["Hello world!"]))
        hits = stand.server.figure("get_hits")
        status, titles, warm = self.page(stand)
        stand.equal("the front page from the cache", (status, titles), (200, ["Hello world!"]))
        stand.check("the cache saves questions to the database", 0 <= warm < cold, (cold, warm))
        stand.check("it is read from", stand.server.figure("get_hits") > hits + 3)
        keys = [line.split()[0] for line in stand.server.ask(b"lru_crawler metadump all") if line.startswith("key=")]
        stand.check("keys have the salt", bool(keys) and all(key.startswith("key=shop%3A") for key in keys), keys[:3])
        self.php(stand, "do.php", "post", "A second post")
        stand.equal("a new post of another process is shown at once", self.page(stand)[1], ["A second post", "Hello world!"])
        self.php(stand, "do.php", "title", "A third title")
        stand.equal("an option of another process, too", self.php(stand, "do.php", "title").strip(), "A third title")
        self.php(stand, "do.php", "transient", "kept")
        stand.equal("a transient is kept in the cache alone", self.php(stand, "do.php", "transient").split(), ["kept", "0"])
        self.php(stand, "do.php", "flush")
        stand.equal("a flush forgets it", self.php(stand, "do.php", "transient").split(), ["0"])
        stand.equal("four processes count to 400", self.count(stand), 400)

    def count(self, stand):
        """Processes that increment one counter at the same time."""
        self.php(stand, "do.php", "count", "0")
        line = ["php", "do.php", "count", "100"]
        running = [subprocess.Popen(line, cwd=stand.folder / "site", stdout=subprocess.DEVNULL) for _ in range(4)]
        for process in running:
            process.wait()
        return int(self.php(stand, "do.php", "counted"))

    def failures(self, stand):
        posts = ["A second post", "Hello world!"]
        stand.server.stop()
        stand.equal("away: the front page", self.page(stand)[:2], (200, posts))
        stand.server.start()
        until("back: the cache is used", lambda: self.page(stand)[0] == 200 and stand.server.figure("curr_items") > 3)
        stand.check("back: it is used again", True)
        stand.server.pause()
        stand.equal("hanging: the front page", self.page(stand)[:2], (200, posts))
        stand.server.go_on()

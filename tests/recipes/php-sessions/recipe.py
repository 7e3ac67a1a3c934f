"""PHP's sessions, which lock, under requests at the same time."""

from concurrent.futures import ThreadPoolExecutor

from recipe import Recipe, printed
from stand import until

PORT = 8080
CLIENTS = 4
ROUNDS = 10


class Tried(Recipe):
    needs = ((("php", "-r", "exit(extension_loaded('memcached') ? 0 : 1);"), "php-cli php-memcached"),)

    def version(self):
        return "PHP " + printed("php", "-r", "echo PHP_VERSION, ', memcached ', phpversion('memcached');")

    def run(self, stand):
        flags = ["-c", "/etc/php-of-nobody", "-S", f"127.0.0.1:{PORT}", self.here / "counter.php"]
        scanned = {"PHP_INI_SCAN_DIR": f":{stand.folder}", "PHP_CLI_SERVER_WORKERS": str(CLIENTS)}
        stand.spawn("php", *flags, port=PORT, env=scanned)
        first = stand.get(f"http://127.0.0.1:{PORT}/")
        stand.equal("a session begins", first.text, "1")
        self.cookie = first.cookie
        session = self.cookie.removeprefix("PHPSESSID=")
        key = f"shop.session.{session}"
        stand.check("its key has the prefix", stand.server.has(key))
        left = stand.server.lifetime(key)
        stand.check("it lives for gc_maxlifetime", 1400 < left <= 1440, left)
        stand.equal("it goes on", self.count(stand).text, "2")
        self.at_once(stand)
        self.locks(stand, f"shop.session.lock.{session}")
        self.failures(stand)

    def count(self, stand, path=""):
        return stand.get(f"http://127.0.0.1:{PORT}/{path}", Cookie=self.cookie)

    def at_once(self, stand):
        """Requests at the same time, none of which may undo what another one wrote."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            seen = list(pool.map(lambda _: int(self.count(stand).text), range(CLIENTS * ROUNDS)))
        wanted = list(range(3, 3 + CLIENTS * ROUNDS))
        stand.equal(f"{CLIENTS * ROUNDS} requests, {CLIENTS} at once, lose no write", sorted(seen), wanted)

    def locks(self, stand, lock):
        """A request that takes long holds the lock; the next one waits for it."""
        with ThreadPoolExecutor(2) as pool:
            long = pool.submit(self.count, stand, "?ms=700")
            until("the lock is held", lambda: stand.server.has(lock))
            left = stand.server.lifetime(lock) or 0
            short = pool.submit(self.count, stand)
            stand.check("a lock ends by itself", 0 < left <= 30, left)
            stand.check("the second request waits", int(short.result().text) == int(long.result().text) + 1)
        stand.check("a lock is given back", not stand.server.has(lock))

    def failures(self, stand):
        stand.server.stop()
        stand.equal("away: session_start fails, and the page says so", self.count(stand).status, 503)
        stand.server.start()
        stand.equal("back: a session begins again", self.count(stand).text, "1")

"""nginx in front of an application, with pages that the application stores, and with pages that nginx stores."""

import hashlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from recipe import Recipe, printed
from stand import until

PORT = 8080
MODULES = "/usr/lib/nginx/modules"
PACKAGES = "nginx libnginx-mod-http-memc libnginx-mod-http-srcache-filter libnginx-mod-http-set-misc"
# The rest of a configuration of nginx.
WHOLE = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_set_misc_module.so;
load_module {modules}/ngx_http_memc_module.so;
load_module {modules}/ngx_http_srcache_filter_module.so;
pid nginx.pid;
daemon off;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include cache.conf;
}}
"""


class Application(BaseHTTPRequestHandler):
    """Answers with its path and how often it was asked for it."""

    asked = Counter()

    def do_GET(self):  # noqa: N802
        Application.asked[self.path] += 1
        body = f"{self.path} {Application.asked[self.path]}".encode()
        if "large" in self.path:
            body += b"x" * 2_000_000
        self.send_response(500 if "error" in self.path else 200)
        for word in ("private", "no-store", "max-age=20"):
            if word in self.path:
                self.send_header("Cache-Control", word)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Tried(Recipe):
    needs = ((("test", "-e", f"{MODULES}/ngx_http_srcache_filter_module.so"), PACKAGES), (("nginx", "-v"), "nginx"))

    def version(self):
        shown = printed("dpkg-query", "--show", "--showformat", "${Package} ${source:Upstream-Version}, ", "nginx", "libnginx-mod-http-srcache-filter")
        return shown.strip(", ").replace("libnginx-mod-http-srcache-filter", "srcache")

    def run(self, stand):
        Application.asked.clear()
        application = ThreadingHTTPServer(("127.0.0.1", 9000), Application)
        threading.Thread(target=application.serve_forever, daemon=True).start()
        (stand.folder / "nginx.conf").write_text(WHOLE.format(modules=MODULES))
        stand.spawn("nginx", "-p", stand.folder, "-c", "nginx.conf", "-e", "error.log", port=PORT)
        self.read(stand)
        self.stored(stand)
        self.failures(stand)
        application.shutdown()

    @staticmethod
    def page(stand, path):
        return stand.get(f"http://127.0.0.1:{PORT}{path}")

    def texts(self, stand, *paths):
        return [self.page(stand, path).text for path in paths]

    def read(self, stand):
        """Pages that the application stores, and nginx reads."""
        stand.equal("memcached: a miss goes to the application", self.texts(stand, "/pages/a"), ["/pages/a 1"])
        body = "<p>stored</p>"
        stand.server.ask(f"set shop:/pages/a 0 60 {len(body)}\r\n{body}".encode(), b"\r\n")
        reply = self.page(stand, "/pages/a")
        stand.equal("memcached: a hit does not", (reply.status, reply.text), (200, body))
        stand.equal("memcached: its type", reply.headers["Content-Type"], "text/html")
        stand.server.ask(b"set shop:/pages/l 0 60 500000\r\n" + b"x" * 500_000, b"\r\n")
        stand.equal("memcached: a large hit", len(self.page(stand, "/pages/l").body), 500_000)
        stand.server.ask(b"set shop:/pages/a%20b 0 60 1\r\nx", b"\r\n")
        stand.equal("memcached: a space in the path", self.texts(stand, "/pages/a%20b"), ["x"])
        long = "/pages/" + "k" * 300
        stand.equal("memcached: a key that is too long goes to the application", self.texts(stand, long), [f"{long} 1"])

    def stored(self, stand):
        """Answers that nginx stores."""
        stand.equal("srcache: a miss is stored", self.texts(stand, "/x?q=1", "/x?q=1"), ["/x?q=1 1"] * 2)
        stand.equal("srcache: another query is another page", self.texts(stand, "/x?q=2", "/x?q=2"), ["/x?q=2 1"] * 2)
        left = stand.server.lifetime("shop:" + md5("/x?q=1"))
        stand.check("srcache: it lives for a minute", 50 < (left or 0) <= 60, left)
        self.texts(stand, "/max-age=20")
        left = stand.server.lifetime("shop:" + md5("/max-age=20"))
        stand.check("srcache: max-age is its lifetime", 10 < (left or 0) <= 20, left)
        for path in ("/private", "/no-store", "/error", "/large"):
            texts = [text.rstrip("x") for text in self.texts(stand, path, path)]
            stand.equal(f"srcache: {path} is not stored", texts, [f"{path} 1", f"{path} 2"])
        with ThreadPoolExecutor(8) as pool:
            seen = set(pool.map(lambda _: self.page(stand, "/x?q=1").text, range(200)))
        stand.equal("srcache: 200 hits, 8 at once", seen, {"/x?q=1 1"})

    def failures(self, stand):
        stand.server.stop()
        stand.equal("away: the application answers", self.texts(stand, "/pages/b", "/y"), ["/pages/b 1", "/y 1"])
        stand.server.start()
        stand.server.ask(b"set shop:/pages/b 0 60 1\r\nb", b"\r\n")
        until("back: a hit", lambda: self.texts(stand, "/pages/b") == ["b"])
        stand.check("back: it is read again", True)
        until("back: stored", lambda: len(set(self.texts(stand, "/z", "/z"))) == 1)
        stand.check("back: it is stored again", True)
        stand.server.pause()
        stand.equal("hanging: the application answers", self.page(stand, "/pages/b").status, 200)
        stand.equal("hanging: srcache, too", self.page(stand, "/x?q=3").status, 200)
        stand.server.go_on()
        until("going on: a hit", lambda: self.texts(stand, "/pages/b") == ["b"])
        stand.check("going on: it is read again", True)


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()

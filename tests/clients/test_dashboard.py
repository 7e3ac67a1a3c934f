"""The dashboard in a browser: what it shows is what the server says, and keys are text."""

import json
import os
import shutil
import subprocess
import time

import pytest
from clauses_text import STORED, store
from harness import PATIENCE_S
from test_http import Pages

# A key that would run if it were put into the page as markup. A key has no spaces.
HOSTILE = b"<img/src=x/onerror=document.title='broken'>"


class Browser:
    """A headless Chromium, driven over its debugging pipe."""

    def __init__(self, program, folder):
        to_browser, self.send_to = os.pipe()
        self.receive_from, from_browser = os.pipe()

        def place():
            # The browser reads from descriptor 3 and writes to 4.
            kept = (os.dup(to_browser), os.dup(from_browser))
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.pending, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Network.enable")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.pending:
                read = os.read(self.receive_from, 1 << 16)
                assert read, "the browser is gone"
                self.pending += read
            line, self.pending = self.pending.split(b"\0", 1)
            reply = json.loads(line)
            if reply.get("id") == self.number:
                assert "error" not in reply, reply
                return reply["result"]
            self.events.append(reply)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression):
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, expression
            time.sleep(0.1)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.send_to)
        os.close(self.receive_from)


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def browser(tmp_path):
    if chromium() is None:
        pytest.skip("chromium is not installed")
    browser = Browser(chromium(), tmp_path)
    yield browser
    browser.close()


def test_the_page_is_small_and_asks_nobody_else():
    with Pages("-t", 1) as server:
        status, headers, page = server.page("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert len(page) <= 150_000
    addresses = {word for word in page.replace('"', " ").split() if "://" in word}
    assert addresses == {"http://www.w3.org/2000/svg"}, "a name of a kind of element, and no address"


def test_the_page_shows_what_the_server_says(browser):
    with Pages("-t", 2) as server:
        with server.wire() as wire:
            wire.exchange(store(b"1", b"a") + store(b"x" * 1234, HOSTILE), STORED * 2)
            # One read of 256 is sampled.
            for _ in range(40):
                wire.send((b"get " + HOSTILE + b"\r\n") * 100)
                wire.receive(100 * len(b"VALUE %s 0 1234\r\n%s\r\nEND\r\n" % (HOSTILE, b"x" * 1234)))
            browser.call("Page.navigate", url=f"http://127.0.0.1:{server.http}/")
            # The page looks every two seconds; the hot keys are told every six.
            browser.until("document.body && Number(document.body.dataset.looks) >= 2")
            browser.until("document.querySelector('#hot td.key') !== null")
            stats = server.stats()
            text = lambda id: browser.evaluate(f"document.querySelector('#tile-{id} b').textContent")
            assert text("items") == stats["curr_items"] == "2"
            assert text("connections") == "1"
            hits = browser.evaluate("[...document.querySelectorAll('#commands tr')].find(row => row.cells[0].textContent === 'get').cells[2].textContent")
            # Each exchange ends with a read that misses.
            assert hits.replace(",", "") == stats["get_hits"] == "4000"
            settings = browser.evaluate("Object.fromEntries([...document.querySelectorAll('#settings tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)))")
            told = server.stats("settings")
            assert settings == {**told, "verbosity": settings["verbosity"]}
        assert browser.evaluate("document.getElementById('state').textContent") == "ready"
        assert HOSTILE.decode() in browser.evaluate("document.getElementById('hot').textContent")
        assert browser.evaluate("document.title") == "Glimmer"
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert browser.evaluate("document.querySelectorAll('.plot').length") > 5
        asked = {event["params"]["request"]["url"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"}
        own = (f"http://127.0.0.1:{server.http}/", "data:", "about:")
        assert all(url.startswith(own) for url in asked), asked
    # The server has gone, and comes back.
    browser.until("!document.getElementById('gone').hidden")


def test_the_page_fits_a_phone(browser):
    with Pages("-t", 2) as server:
        browser.call("Emulation.setDeviceMetricsOverride", width=375, height=800, deviceScaleFactor=1, mobile=True)
        browser.call("Page.navigate", url=f"http://127.0.0.1:{server.http}/")
        browser.until("document.body && Number(document.body.dataset.looks) >= 1")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 375

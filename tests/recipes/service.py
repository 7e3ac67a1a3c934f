"""What services that read products through the cache are asked, whatever they are written in."""

from concurrent.futures import ThreadPoolExecutor

from stand import until

PORT = 8080


def product(stand, name):
    return stand.get(f"http://127.0.0.1:{PORT}/product?id={name}")


def tried(stand):
    """Its database answers `NAME N`, where N counts the questions; it has no product `none`."""
    stand.equal("a miss asks the database", product(stand, "chair").text, "chair 1")
    stand.equal("a hit does not", product(stand, "chair").text, "chair 1")
    stand.check("its key has the prefix", stand.server.has("shop:product:chair"))
    left = stand.server.lifetime("shop:product:chair")
    stand.check("it lives for 5 minutes", 290 < left <= 300, left)
    stand.equal("an error of the database is not stored", product(stand, "none").status, 502)
    stand.equal("another product", product(stand, "table").text, "table 2")
    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(lambda _: product(stand, "chair").text, range(200)))
    stand.equal("200 hits, 8 at once", seen, {"chair 1"})
    long = "k" * 300
    stand.equal("a key that is too long is a miss", [product(stand, long).text, product(stand, long).text], [f"{long} 3", f"{long} 4"])
    stand.server.stop()
    stand.equal("away: the database answers", [product(stand, "chair").text for _ in range(3)], ["chair 5", "chair 6", "chair 7"])
    stand.server.start()
    until("back: hits", lambda: product(stand, "chair").text == product(stand, "chair").text)
    stand.check("back: it is used again", stand.server.has("shop:product:chair"))
    stand.server.pause()
    stand.equal("hanging: the database answers", product(stand, "table").status, 200)
    stand.server.go_on()
    until("going on: hits", lambda: product(stand, "lamp").text == product(stand, "lamp").text)
    stand.check("going on: it is used again", stand.server.has("shop:product:lamp"))

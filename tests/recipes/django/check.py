"""A site with the settings of the page: reports `ok NAME` for each check. See `script` in tests/recipes/stand.py."""

import os
import threading
import time

import cache_settings
import django
from django.conf import settings

settings.configure(
    **{name: value for name, value in vars(cache_settings).items() if name.isupper()},
    SECRET_KEY="of this test",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
)
django.setup()

from django.core.cache import cache  # noqa: E402
from django.core.cache.backends.base import InvalidCacheKey  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402
from pymemcache.client.base import Client as Raw  # noqa: E402

DAYS = 24 * 60 * 60


def visits(request):
    """Counts the visits of a session."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse(str(request.session["visits"]))


urlpatterns = [path("visits", visits)]


def check(name, held):
    print("ok" if held else "not ok", name, flush=True)


def server(verb):
    print("server", verb, flush=True)
    input()


def comes(holds):
    """Whether something holds soon."""
    deadline = time.monotonic() + 30
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def is_refused(key):
    try:
        cache.get(key)
    except InvalidCacheKey:
        return True
    return False


def count(times):
    for _ in range(times):
        cache.incr("counter")


def commands():
    value = {"words": ["hello", "wörld"], "number": 42}
    cache.set("greeting", value)
    check("a value comes back", cache.get("greeting") == value)
    check("its key has the prefix and the version", Raw("127.0.0.1:11211").get("shop:1:greeting") is not None)
    check("add keeps what is there", not cache.add("greeting", "other") and cache.get("greeting") == value)
    cache.set_many({f"many-{number}": number for number in range(200)})
    found = cache.get_many([f"many-{number}" for number in range(300)])
    check("200 keys at once", found == {f"many-{number}": number for number in range(200)})
    cache.delete("greeting")
    check("a deleted key is a miss", cache.get("greeting", "none") == "none")
    check("get_or_set computes once", [cache.get_or_set("computed", lambda: 7), cache.get_or_set("computed", lambda: 8)] == [7, 7])
    cache.set("counter", 0)
    threads = [threading.Thread(target=count, args=(100,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("four threads count to 400", cache.get("counter") == 400)


def bounds():
    cache.set("later", 1, 60 * DAYS)
    check("a lifetime of 60 days", cache.get("later") == 1)
    cache.set("never", 1, 0)
    check("a lifetime of 0 stores nothing", cache.get("never") is None)
    cache.set("short", 1, 1)
    check("a lifetime of a second ends", comes(lambda: cache.get("short") is None))
    check("a touch takes a lifetime back", cache.touch("later", 100) and cache.get("later") == 1)
    check("a key of 250 bytes", not is_refused("k" * 243) and cache.get("k" * 243) is None)
    check("a key of 251 bytes is refused", is_refused("k" * 244))
    cache.set("large", "small")
    cache.set("large", os.urandom(2 << 20))
    check("a value over the limit leaves nothing", cache.get("large") is None)


def failures():
    user = Client()
    counted = [user.get("/visits").content for _ in range(3)]
    check("a session counts", counted == [b"1", b"2", b"3"])
    cache.set("before", 1)
    server("stop")
    check("away: a read is a miss", cache.get("before", "miss") == "miss")
    cache.set("during", 1)
    check("away: a write does nothing", cache.get("during") is None)
    check("away: the session is in the database", user.get("/visits").content == b"4")
    server("start")
    check("back: it is used again", comes(lambda: cache.set("after", 1) or cache.get("after") == 1))
    check("back: the session went on", user.get("/visits").content == b"5")
    server("pause")
    check("hanging: a read is a miss", cache.get("after", "miss") == "miss")
    check("hanging: the session is in the database", user.get("/visits").content == b"6")
    server("go on")
    check("going on: it is used again", comes(lambda: cache.set("after", 2) or cache.get("after") == 2))


call_command("migrate", verbosity=0)
commands()
bounds()
failures()

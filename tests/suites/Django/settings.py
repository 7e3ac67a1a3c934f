"""Django's own test settings, with one of its memcached backends as the cache."""

import os

from test_sqlite import *  # noqa: F403

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.memcached." + os.environ["BACKEND"],
        "LOCATION": f"{os.environ['HOST']}:{os.environ['PORT']}",
    }
}

"""Python libraries that use Redis as a cache, for locks and for limits, against the server at $HOST and $PORT."""

import asyncio
import os
import time

import django
import pytest
import redis
from aiocache import RedisCache
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock
from django.conf import settings
from dogpile.cache import make_region
from limits import parse, storage, strategies

HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
URL = f"redis://{HOST}:{PORT}"

settings.configure(
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": URL},
        "django-redis": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"{URL}/0"},
    }
)
django.setup()

from django.core.cache import caches  # noqa: E402


@pytest.fixture(autouse=True)
def client():
    with redis.Redis(HOST, PORT, decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.mark.parametrize("backend", ["default", "django-redis"])
def test_django(backend):
    cache = caches[backend]
    assert cache.set("a", {"x": 1}, 100) is not False and cache.get("a") == {"x": 1}
    assert cache.add("a", 2) is False and cache.add("b", 2, 50) and cache.get_or_set("c", 3) == 3
    assert not cache.set_many({"d": 4, "e": "five", **{f"n{i}": i for i in range(500)}}, 100)
    assert cache.get_many(["a", "d", "e", "none"]) == {"a": {"x": 1}, "d": 4, "e": "five"}
    assert cache.incr("d", 10) == 14 and cache.decr("d") == 13
    with pytest.raises(ValueError):
        cache.incr("missing")
    assert cache.touch("a", 5) and not cache.touch("missing") and cache.has_key("a")
    cache.delete_many(["d", "e"])
    assert cache.delete("b") and not cache.delete("b") and cache.get("d") is None
    cache.set("gone", 1, 0.05 if backend == "django-redis" else 0)
    time.sleep(0.1)
    assert cache.get("gone") is None
    cache.clear()
    assert cache.get("a") is None


def test_django_redis_beyond_django():
    cache = caches["django-redis"]
    cache.set("key1", 1, timeout=100)
    cache.set("key2", 2, timeout=None)
    assert cache.ttl("key1") == 100 and cache.ttl("key2") is None and cache.ttl("none") == 0
    assert sorted(cache.keys("key*")) == ["key1", "key2"] and sorted(cache.iter_keys("key*")) == ["key1", "key2"]
    assert cache.persist("key1") and cache.expire("key2", 60) and cache.pttl("key2") > 50_000
    with cache.lock("lock", timeout=5):
        assert cache.client.get_client().keys("*lock*")
    assert cache.delete_pattern("key*") == 2


def test_dogpile():
    region = make_region().configure("dogpile.cache.redis", expiration_time=100, arguments={"host": HOST, "port": PORT, "distributed_lock": True, "lock_timeout": 5})
    calls = []
    for _ in range(2):
        assert region.get_or_create("key", lambda: calls.append(1) or "made") == "made"
    assert calls == [1]
    region.set_multi({"a": 1, "b": 2})
    assert region.get_multi(["a", "b", "c"])[:2] == [1, 2]
    region.delete_multi(["a", "b"])
    assert not region.get("a")


def test_aiocache():
    async def run():
        cache = RedisCache(endpoint=HOST, port=PORT, namespace="ns:")
        assert await cache.set("a", "1", ttl=100) and await cache.get("a") == "1"
        assert await cache.multi_set([("x", "1"), ("y", "2")], ttl=50) and await cache.multi_get(["x", "y", "z"]) == ["1", "2", None]
        assert await cache.increment("n", 5) == 5 and await cache.exists("n") and await cache.expire("n", 10)
        with pytest.raises(ValueError):
            await cache.add("a", "2")
        async with RedLock(cache, "a", lease=5):
            assert len(await cache.raw("keys", "*-lock")) == 1
        assert not await cache.raw("keys", "*-lock")
        async with OptimisticLock(cache, "a") as lock:
            await lock.cas("3", ttl=20)
        with pytest.raises(OptimisticLockError):
            async with OptimisticLock(cache, "a") as lock:
                await cache.set("a", "4")
                await lock.cas("5")
        assert await cache.delete("a") == 1 and await cache.clear("ns:")
        assert await cache.get("x") is None
        await cache.close()

    asyncio.run(run())


def test_limits():
    limiter = strategies.FixedWindowRateLimiter(storage.storage_from_string(URL))
    limit = parse("3/minute")
    assert [limiter.hit(limit, "user") for _ in range(5)] == [True, True, True, False, False]
    assert limiter.get_window_stats(limit, "user").remaining == 0
    limiter.clear(limit, "user")
    assert limiter.hit(limit, "user", cost=3) and not limiter.hit(limit, "user")


def test_redis_py_locks(client):
    lock = client.lock("lock", timeout=5)
    assert lock.acquire(blocking=False) and lock.extend(5) and lock.reacquire()
    assert not client.lock("lock", timeout=5).acquire(blocking=False)
    lock.release()
    assert not client.exists("lock")


def test_redis_py_pipelines(client):
    with client.pipeline() as pipeline:
        for i in range(1000):
            pipeline.set(f"k{i}", i).incr(f"k{i}")
        assert pipeline.execute()[-1] == 1000
    assert len(list(client.scan_iter("k*", count=100))) == 1000 and client.delete(*client.keys("k*")) == 1000
    assert client.info("keyspace") == {} and client.dbsize() == 0


def test_redis_py_asyncio():
    async def run():
        client = redis.asyncio.Redis(host=HOST, port=PORT)
        async with client.pipeline(transaction=True) as pipeline:
            assert await pipeline.set("a", 1).get("a").execute() == [True, b"1"]
        async with client.lock("lock", timeout=5):
            assert await client.exists("lock") == 1
        await client.aclose()

    asyncio.run(run())

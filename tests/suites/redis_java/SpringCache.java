// Spring's cache over Lettuce and over Jedis, and both clients, against the server at the address that is given.

import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.SetArgs;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.springframework.data.redis.cache.BatchStrategies;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;

public class SpringCache {
    static void expect(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("got " + got + ", not " + wanted);
        }
    }

    static void spring(RedisConnectionFactory factory) {
        for (var clears : new Clears[] {Clears.KEYS, Clears.SCAN}) {
            var strategy = clears == Clears.KEYS ? BatchStrategies.keys() : BatchStrategies.scan(100);
            var writer = RedisCacheWriter.lockingRedisCacheWriter(factory, strategy);
            var settings = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMinutes(1));
            var manager = RedisCacheManager.builder(writer).cacheDefaults(settings).build();
            var cache = manager.getCache("books");
            cache.put("isbn", "title");
            expect(cache.get("isbn", String.class), "title");
            expect(cache.putIfAbsent("isbn", "other").get(), "title");
            expect(cache.get("made", () -> "value"), "value");
            for (int i = 0; i < 300; i++) {
                cache.put(i, "value");
            }
            cache.evict("isbn");
            expect(cache.get("isbn"), null);
            manager.getCache("others").put("stays", "here");
            cache.clear();
            expect(cache.get("made"), null);
            expect(manager.getCache("others").get("stays", String.class), "here");
        }
        var template = new StringRedisTemplate(factory);
        var values = template.opsForValue();
        values.multiSet(Map.of("a", "1", "b", "2"));
        expect(values.increment("a", 4), 5L);
        expect(values.getAndExpire("a", Duration.ofMinutes(1)), "5");
        expect(values.getAndDelete("a"), "5");
        expect(values.setIfAbsent("b", "3"), false);
    }

    enum Clears { KEYS, SCAN }

    static void lettuce(String host, int port) {
        var client = RedisClient.create(RedisURI.create(host, port));
        try (var connection = client.connect()) {
            var redis = connection.sync();
            expect(redis.set("a", "1", SetArgs.Builder.nx().ex(100)), "OK");
            redis.multi();
            redis.incrby("a", 4);
            redis.get("a");
            var done = redis.exec();
            expect(done.get(0), 5L);
            expect(done.get(1), "5");
            for (int i = 0; i < 300; i++) {
                redis.set("key:" + i, "v");
            }
            var cursor = new KeyScanCursor<String>();
            int count = 0;
            cursor.setCursor("0");
            do {
                cursor = redis.scan(cursor, ScanArgs.Builder.matches("key:*").limit(50));
                count += cursor.getKeys().size();
            } while (!cursor.isFinished());
            expect(count, 300);
            expect(redis.getrange("a", 0, -1), "5");
        }
        client.shutdown();
    }

    static void jedis(String host, int port) {
        try (var redis = new Jedis(host, port)) {
            expect(redis.set("a", "1", SetParams.setParams().ex(100)), "OK");
            var pipe = redis.multi();
            var sum = pipe.incrBy("a", 4);
            pipe.getDel("a");
            expect(pipe.exec().size(), 2);
            expect(sum.get(), 5L);
            for (int i = 0; i < 300; i++) {
                redis.set("key:" + i, "v");
            }
            int count = 0;
            var cursor = ScanParams.SCAN_POINTER_START;
            do {
                var page = redis.scan(cursor, new ScanParams().match("key:*").count(50));
                count += page.getResult().size();
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            expect(count, 300);
            expect(redis.keys("key:?").size(), 10);
        }
    }

    public static void main(String[] arguments) {
        var host = arguments[0].split(":")[0];
        int port = Integer.parseInt(arguments[0].split(":")[1]);
        var standalone = new RedisStandaloneConfiguration(host, port);
        var overLettuce = new LettuceConnectionFactory(standalone);
        var overJedis = new JedisConnectionFactory(standalone);
        for (var factory : new RedisConnectionFactory[] {overLettuce, overJedis}) {
            if (factory instanceof LettuceConnectionFactory some) {
                some.afterPropertiesSet();
                some.start();
            } else if (factory instanceof JedisConnectionFactory some) {
                some.afterPropertiesSet();
                some.start();
            }
        }
        var checks = new java.util.LinkedHashMap<String, Runnable>();
        checks.put("Spring's cache over Lettuce", () -> spring(overLettuce));
        checks.put("Spring's cache over Jedis", () -> spring(overJedis));
        checks.put("Lettuce", () -> lettuce(host, port));
        checks.put("Jedis", () -> jedis(host, port));
        checks.forEach((name, check) -> {
            try (var redis = new Jedis(host, port)) {
                redis.flushAll();
            }
            check.run();
            System.out.println("ok " + name);
        });
        System.exit(0);
    }
}

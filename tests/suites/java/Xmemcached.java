import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import net.rubyeye.xmemcached.CASOperation;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.command.TextCommandFactory;
import net.rubyeye.xmemcached.utils.AddrUtil;

/** Xmemcached against a running server: {@code java Xmemcached.java HOST:PORT}. Prints a line for each check, as TAP has it. */
public final class Xmemcached {
    private interface Check {
        void run(MemcachedClient client) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("set and get", Xmemcached::setAndGet);
        checks.put("multi-get", Xmemcached::multiGet);
        checks.put("add, replace, append, prepend", Xmemcached::conditional);
        checks.put("cas", Xmemcached::cas);
        checks.put("counters", Xmemcached::counters);
        checks.put("delete and touch", Xmemcached::deleteAndTouch);
        checks.put("stats and versions", Xmemcached::statsAndVersions);
        for (boolean binary : new boolean[] {false, true}) {
            XMemcachedClientBuilder builder = new XMemcachedClientBuilder(AddrUtil.getAddresses(arguments[0]));
            builder.setCommandFactory(binary ? new BinaryCommandFactory() : new TextCommandFactory());
            builder.setOpTimeout(20_000);
            MemcachedClient client = builder.build();
            for (Map.Entry<String, Check> check : checks.entrySet()) {
                String name = (binary ? "binary: " : "text: ") + check.getKey();
                try {
                    client.flushAll();
                    check.getValue().run(client);
                    System.out.println("ok " + name);
                } catch (Exception | AssertionError error) {
                    error.printStackTrace();
                    System.out.println("not ok " + name);
                }
            }
            client.shutdown();
        }
    }

    private static void equal(Object received, Object expected) {
        if (!Objects.equals(received, expected)) {
            throw new AssertionError("expected " + expected + ", received " + received);
        }
    }

    private static void setAndGet(MemcachedClient client) throws Exception {
        equal(client.get("key"), null);
        for (Object value : List.of("", "text", 12, -1.5, List.of("a", "b"), "x".repeat(100_000))) {
            equal(client.set("key", 0, value), true);
            equal(client.get("key"), value);
        }
        String longest = "k".repeat(250);
        equal(client.set(longest, 100, "long"), true);
        equal(client.get(longest), "long");
    }

    private static void multiGet(MemcachedClient client) throws Exception {
        List<String> keys = new java.util.ArrayList<>();
        for (int n = 0; n < 110; n++) {
            keys.add("k" + n);
            if (n < 100) {
                client.setWithNoReply("k" + n, 0, n);
            }
        }
        client.set("last", 0, "1");
        Map<String, Integer> found = client.get(keys);
        equal(found.size(), 100);
        equal(found.get("k99"), 99);
    }

    private static void conditional(MemcachedClient client) throws Exception {
        equal(client.replace("key", 0, "0"), false);
        equal(client.append("key", "0"), false);
        equal(client.add("key", 0, "1"), true);
        equal(client.add("key", 0, "2"), false);
        equal(client.append("key", "2"), true);
        equal(client.prepend("key", "0"), true);
        equal(client.get("key"), "012");
    }

    private static void cas(MemcachedClient client) throws Exception {
        client.set("key", 0, 1);
        GetsResponse<Integer> held = client.gets("key");
        equal(client.cas("key", 0, 2, held.getCas()), true);
        equal(client.cas("key", 0, 3, held.getCas()), false);
        equal(client.cas("key", 0, new CASOperation<Integer>() {
            @Override
            public int getMaxTries() {
                return 3;
            }

            @Override
            public Integer getNewValue(long unique, Integer value) {
                return value + 1;
            }
        }), true);
        equal(client.get("key"), 3);
    }

    private static void counters(MemcachedClient client) throws Exception {
        equal(client.incr("count", 5, 10), 10L);
        equal(client.incr("count", 5), 15L);
        equal(client.decr("count", 100), 0L);
    }

    private static void deleteAndTouch(MemcachedClient client) throws Exception {
        equal(client.delete("key"), false);
        equal(client.touch("key", 10), false);
        client.set("key", 0, "1");
        equal(client.touch("key", 10), true);
        equal(client.delete("key"), true);
        equal(client.get("key"), null);
    }

    private static void statsAndVersions(MemcachedClient client) throws Exception {
        Map<String, String> stats = client.getStats().values().iterator().next();
        equal(stats.containsKey("curr_items"), true);
        equal(client.getStatsByItem("settings").values().iterator().next().containsKey("maxbytes"), true);
        equal(client.getVersions().values().iterator().next().startsWith("1.6."), true);
    }
}

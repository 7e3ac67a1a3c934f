import com.spotify.folsom.AsciiMemcacheClient;
import com.spotify.folsom.BinaryMemcacheClient;
import com.spotify.folsom.GetResult;
import com.spotify.folsom.MemcacheClient;
import com.spotify.folsom.MemcacheClientBuilder;
import com.spotify.folsom.MemcacheStatus;
import com.spotify.folsom.client.NoopMetrics;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/** Folsom against a running server: {@code java Folsom.java HOST PORT}. Prints a line for each check, as TAP has it. */
public final class Folsom {
    private interface Check {
        void run(MemcacheClient<String> client) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("set and get", Folsom::setAndGet);
        checks.put("multi-get", Folsom::multiGet);
        checks.put("add, replace, append, prepend", Folsom::conditional);
        checks.put("cas", Folsom::cas);
        checks.put("delete and touch", Folsom::deleteAndTouch);
        checks.put("counters", Folsom::counters);
        for (boolean binary : new boolean[] {false, true}) {
            MemcacheClientBuilder<String> builder = MemcacheClientBuilder.newStringClient()
                    .withAddress(arguments[0], Integer.parseInt(arguments[1]))
                    .withMetrics(NoopMetrics.INSTANCE)
                    .withRequestTimeoutMillis(20_000);
            MemcacheClient<String> client = binary ? builder.connectBinary() : builder.connectAscii();
            client.awaitConnected(20, TimeUnit.SECONDS);
            for (Map.Entry<String, Check> check : checks.entrySet()) {
                String name = (binary ? "binary: " : "text: ") + check.getKey();
                try {
                    get(client.flushAll(0));
                    check.getValue().run(client);
                    System.out.println("ok " + name);
                } catch (Exception | AssertionError error) {
                    error.printStackTrace();
                    System.out.println("not ok " + name);
                }
            }
            client.shutdown();
        }
        System.exit(0);
    }

    private static <T> T get(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(20, TimeUnit.SECONDS);
    }

    private static void equal(Object received, Object expected) {
        if (!Objects.equals(received, expected)) {
            throw new AssertionError("expected " + expected + ", received " + received);
        }
    }

    private static void setAndGet(MemcacheClient<String> client) throws Exception {
        equal(get(client.get("key")), null);
        for (String value : List.of("", "text", "END\r\n", "schlüssel", "x".repeat(100_000))) {
            equal(get(client.set("key", value, 100)), MemcacheStatus.OK);
            equal(get(client.get("key")), value);
        }
    }

    private static void multiGet(MemcacheClient<String> client) throws Exception {
        List<String> keys = new ArrayList<>();
        List<String> expected = new ArrayList<>();
        for (int n = 0; n < 110; n++) {
            keys.add("k" + n);
            expected.add(n < 100 ? "" + n : null);
            if (n < 100) {
                equal(get(client.set("k" + n, "" + n, 0)), MemcacheStatus.OK);
            }
        }
        equal(get(client.get(keys)), expected);
    }

    private static void conditional(MemcacheClient<String> client) throws Exception {
        boolean binary = client instanceof BinaryMemcacheClient;
        MemcacheStatus absent = binary ? MemcacheStatus.KEY_NOT_FOUND : MemcacheStatus.ITEM_NOT_STORED;
        equal(get(client.replace("key", "0", 0)), absent);
        equal(get(client.append("key", "0")), MemcacheStatus.ITEM_NOT_STORED);
        equal(get(client.add("key", "1", 0)), MemcacheStatus.OK);
        equal(get(client.add("key", "2", 0)), MemcacheStatus.ITEM_NOT_STORED);
        equal(get(client.append("key", "2")), MemcacheStatus.OK);
        equal(get(client.prepend("key", "0")), MemcacheStatus.OK);
        equal(get(client.get("key")), "012");
    }

    private static void cas(MemcacheClient<String> client) throws Exception {
        get(client.set("key", "1", 0));
        GetResult<String> held = get(client.casGet("key"));
        equal(held.getValue(), "1");
        equal(get(client.set("key", "2", 0, held.getCas())), MemcacheStatus.OK);
        equal(get(client.set("key", "3", 0, held.getCas())), MemcacheStatus.KEY_EXISTS);
        equal(get(client.get(Arrays.asList("key"))), Arrays.asList("2"));
    }

    private static void deleteAndTouch(MemcacheClient<String> client) throws Exception {
        equal(get(client.delete("key")), MemcacheStatus.KEY_NOT_FOUND);
        equal(get(client.touch("key", 10)), MemcacheStatus.KEY_NOT_FOUND);
        get(client.set("key", "1", 0));
        equal(get(client.touch("key", 10)), MemcacheStatus.OK);
        equal(get(client.delete("key")), MemcacheStatus.OK);
    }

    private static void counters(MemcacheClient<String> client) throws Exception {
        if (client instanceof BinaryMemcacheClient) {
            BinaryMemcacheClient<String> binary = (BinaryMemcacheClient<String>) client;
            equal(get(binary.incr("count", 5, 10, 0)), 10L);
            equal(get(binary.incr("count", 5, 10, 0)), 15L);
            equal(get(binary.decr("count", 100, 10, 0)), 0L);
        } else {
            AsciiMemcacheClient<String> text = (AsciiMemcacheClient<String>) client;
            equal(get(text.incr("count", 5)), null);
            get(text.set("count", "10", 0));
            equal(get(text.incr("count", 5)), 15L);
            equal(get(text.decr("count", 100)), 0L);
        }
    }
}

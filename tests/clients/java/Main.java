import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;

/**
 * spymemcached against a running server: {@code java Main.java 127.0.0.1:11211 text|binary}. Prints {@code ok NAME} for each check and
 * ends at the first wrong answer.
 */
public final class Main {
    private static final int NEVER = 100_000;

    private final MemcachedClient client;
    private final boolean binary;
    private final InetSocketAddress address;

    private Main(InetSocketAddress address, boolean binary) throws Exception {
        this.address = address;
        this.binary = binary;
        this.client = connect();
    }

    /** A check may throw whatever the client throws. */
    private interface Check {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2 || !List.of("text", "binary").contains(arguments[1])) {
            System.err.println("usage: Main.java HOST:PORT text|binary");
            System.exit(2);
        }
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.LogManager.getLogManager().reset();
        String[] parts = arguments[0].split(":");
        InetSocketAddress address = new InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
        new Main(address, arguments[1].equals("binary")).run();
    }

    private void run() throws Exception {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("set and get", this::setAndGet);
        checks.put("multi-get", this::multiGet);
        checks.put("add and replace", this::addAndReplace);
        checks.put("append and prepend", this::appendAndPrepend);
        checks.put("cas", this::cas);
        checks.put("delete", this::delete);
        checks.put("incr and decr", this::count);
        checks.put("touch", this::touch);
        checks.put("expiry", this::expiry);
        checks.put("large values", this::largeValues);
        checks.put("many keys", this::manyKeys);
        checks.put("many connections", this::manyConnections);
        checks.put("stats and version", this::statsAndVersion);
        checks.put("flush", this::flush);
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            equal(true, client.flush().get());
            try {
                check.getValue().run();
            } catch (Throwable fault) {
                System.err.print(check.getKey() + ": ");
                fault.printStackTrace();
                System.exit(1);
            }
            System.out.println("ok " + check.getKey());
        }
        client.shutdown();
    }

    private MemcachedClient connect() throws Exception {
        return new MemcachedClient(
                new ConnectionFactoryBuilder()
                        .setProtocol(binary ? Protocol.BINARY : Protocol.TEXT)
                        .setOpTimeout(20_000)
                        .build(),
                List.of(address));
    }

    private void setAndGet() throws Exception {
        equal(null, client.get("absent"));
        for (Object value : Arrays.asList("", "text", "END\r\n", "x".repeat(5000), 12, -1.5, true, new Date(0), List.of(1, "a"))) {
            set("key", value);
            equal(value, client.get("key"));
        }
        byte[] bytes = {0, (byte) 255, '\r', '\n'};
        set("bytes", bytes);
        equal(true, Arrays.equals(bytes, (byte[]) client.get("bytes")));
        String longest = "k".repeat(250);
        set(longest, "long");
        equal("long", client.get(longest));
    }

    private void multiGet() throws Exception {
        set("a", "1");
        set("b", "");
        equal(Map.of("a", "1", "b", ""), client.getBulk("a", "absent", "b"));
        equal(Map.of(), client.getBulk("absent"));
    }

    private void addAndReplace() throws Exception {
        equal(false, client.replace("key", 0, "0").get());
        equal(true, client.add("key", 0, "1").get());
        equal(false, client.add("key", 0, "2").get());
        equal(true, client.replace("key", 0, "3").get());
        equal("3", client.get("key"));
    }

    private void appendAndPrepend() throws Exception {
        equal(false, client.append("key", "0").get());
        equal(false, client.prepend("key", "0").get());
        set("key", "1");
        equal(true, client.append("key", "2").get());
        equal(true, client.prepend("key", "0").get());
        equal("012", client.get("key"));
    }

    private void cas() throws Exception {
        set("key", "1");
        CASValue<Object> first = client.gets("key");
        equal("1", first.getValue());
        equal(CASResponse.OK, client.cas("key", first.getCas(), "2"));
        equal(CASResponse.EXISTS, client.cas("key", first.getCas(), "3"));
        equal("2", client.get("key"));
        equal(CASResponse.NOT_FOUND, client.cas("absent", first.getCas(), "3"));
    }

    private void delete() throws Exception {
        equal(false, client.delete("key").get());
        set("key", "1");
        equal(true, client.delete("key").get());
        equal(null, client.get("key"));
    }

    private void count() throws Exception {
        equal(-1L, client.incr("key", 1));
        set("key", "10");
        equal(15L, client.incr("key", 5));
        equal(12L, client.decr("key", 3));
        equal(0L, client.decr("key", 100));
        // With a first value: one request in the binary protocol, an incr and an add in the text protocol.
        equal(100L, client.incr("other", 5, 100L, NEVER));
        equal(105L, client.incr("other", 5, 100L, NEVER));
        set("key", "word");
        refused(() -> client.asyncIncr("key", 1).get());
    }

    private void touch() throws Exception {
        equal(false, client.touch("key", NEVER).get());
        set("key", "1");
        equal(true, client.touch("key", NEVER).get());
        if (binary) {
            equal("1", client.getAndTouch("key", NEVER).getValue());
            equal(null, client.getAndTouch("absent", NEVER));
        }
        equal(true, client.touch("key", (int) (System.currentTimeMillis() / 1000) - 10).get());
        equal(null, client.get("key"));
    }

    private void expiry() throws Exception {
        int now = (int) (System.currentTimeMillis() / 1000);
        equal(true, client.set("past", now - 10, "1").get());
        equal(null, client.get("past"));
        equal(true, client.set("short", 1, "1").get());
        equal(true, client.set("absolute", now + 1, "1").get());
        equal(true, client.set("kept", 1, "1").get());
        equal(true, client.touch("kept", NEVER).get());
        Thread.sleep(3000);
        equal(Map.of("kept", "1"), client.getBulk("short", "absolute", "kept"));
    }

    private void largeValues() throws Exception {
        for (int size : new int[] {4096, 65_536, 1_000_000}) {
            byte[] value = new byte[size];
            // Noise, so that the client's compression does not shrink it.
            new Random(size).nextBytes(value);
            set("large", value);
            equal(true, Arrays.equals(value, (byte[]) client.get("large")));
        }
        byte[] tooLarge = new byte[1 << 20];
        new Random(1).nextBytes(tooLarge);
        refused(() -> client.set("large", 0, tooLarge).get());
        equal(null, client.get("large"));
    }

    private void manyKeys() throws Exception {
        Map<String, Object> items = new HashMap<>();
        List<Future<Boolean>> stored = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            items.put("key-" + i, "value-" + i);
            stored.add(client.set("key-" + i, 0, "value-" + i));
        }
        for (Future<Boolean> each : stored) {
            equal(true, each.get());
        }
        equal(items, client.getBulk(items.keySet()));
    }

    private void manyConnections() throws Exception {
        set("count", "0");
        List<MemcachedClient> clients = new ArrayList<>();
        List<Future<Long>> counted = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            clients.add(connect());
        }
        for (int round = 0; round < 200; round++) {
            for (MemcachedClient each : clients) {
                counted.add(each.asyncIncr("count", 1));
            }
        }
        for (Future<Long> each : counted) {
            each.get(20, TimeUnit.SECONDS);
        }
        equal(1600L, client.incr("count", 0));
        clients.forEach(MemcachedClient::shutdown);
    }

    private void statsAndVersion() throws Exception {
        set("key", "1");
        Map<String, String> figures = client.getStats().values().iterator().next();
        equal(true, Long.parseLong(figures.get("curr_items")) >= 1);
        equal(true, client.getVersions().values().iterator().next().startsWith("1.6."));
    }

    private void flush() throws Exception {
        set("key", "1");
        equal(true, client.flush().get());
        equal(null, client.get("key"));
    }

    private void set(String key, Object value) throws Exception {
        equal(true, client.set(key, 0, value).get());
    }

    /** The server refuses: the text protocol throws, the binary protocol gives a status that is no success. */
    private static void refused(Callable<Object> call) throws Exception {
        Object answer;
        try {
            answer = call.call();
        } catch (ExecutionException refusal) {
            return;
        }
        if (!Boolean.FALSE.equals(answer) && !Long.valueOf(-1).equals(answer)) {
            throw new AssertionError("expected a refusal, received " + answer);
        }
    }

    private static void equal(Object expected, Object received) {
        if (!Objects.equals(expected, received)) {
            throw new AssertionError("expected " + expected + ", received " + received);
        }
    }
}

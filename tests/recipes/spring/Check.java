import java.util.HashSet;
import java.util.List;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.CacheEvict;
import org.springframework.cache.annotation.CachePut;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** A context with the configuration of the page: reports `ok NAME` for each check. See `script` in tests/recipes/stand.py. */
public class Check {
    private static final Scanner ANSWERS = new Scanner(System.in);

    /** Products whose text says how often the database was asked. */
    public static class Shop {
        final AtomicInteger asked = new AtomicInteger();

        @Cacheable("products")
        public String product(String name) {
            return name + " " + asked.incrementAndGet();
        }

        @CachePut(cacheNames = "products", key = "#name")
        public String rename(String name, String text) {
            return text;
        }

        @CacheEvict("products")
        public void forget(String name) {}
    }

    private static void check(String name, boolean held) {
        System.out.println((held ? "ok " : "not ok ") + name);
    }

    private static void server(String verb) {
        System.out.println("server " + verb);
        ANSWERS.nextLine();
    }

    private static boolean comes(BooleanSupplier holds) throws InterruptedException {
        for (int tries = 0; tries < 300; tries++) {
            if (holds.getAsBoolean()) {
                return true;
            }
            Thread.sleep(100);
        }
        return false;
    }

    public static void main(String[] arguments) throws Exception {
        try (var context = new AnnotationConfigApplicationContext(CacheConfiguration.class, Shop.class)) {
            var shop = context.getBean(Shop.class);
            var cache = context.getBean(CacheManager.class).getCache("products");
            commands(shop, cache);
            failures(shop);
        }
        System.exit(0);
    }

    private static void commands(Shop shop, org.springframework.cache.Cache cache) throws Exception {
        check("a miss calls the method", shop.product("chair").equals("chair 1"));
        check("a hit does not", shop.product("chair").equals("chair 1"));
        check("its key has the prefix", raw("mg products:chair t").startsWith("HD t"));
        int left = Integer.parseInt(raw("mg products:chair t").substring(4).trim());
        check("it lives for 5 minutes", 290 < left && left <= 300);
        shop.rename("chair", "armchair");
        check("CachePut replaces", shop.product("chair").equals("armchair"));
        shop.forget("chair");
        check("CacheEvict forgets", shop.product("chair").equals("chair 2"));
        cache.put("list", List.of("a", "b"));
        check("an object comes back", List.of("a", "b").equals(cache.get("list").get()));
        check("putIfAbsent keeps what is there", cache.putIfAbsent("list", List.of()).get().equals(List.of("a", "b")));
        try (var threads = new Threads()) {
            Set<String> seen = new HashSet<>();
            for (Future<String> each : threads.eachOf(200, () -> shop.product("chair"))) {
                seen.add(each.get());
            }
            check("200 hits, 8 at once", seen.equals(Set.of("chair 2")));
        }
        String key = "k".repeat(300);
        check("a key that is too long is a miss", !shop.product(key).equals(shop.product(key)));
    }

    private static void failures(Shop shop) throws Exception {
        server("stop");
        check("away: the method is called", comes(() -> !shop.product("chair").equals("chair 2")));
        server("start");
        check("back: it is used again", comes(() -> shop.product("lamp").equals(shop.product("lamp"))));
        server("pause");
        check("hanging: the method is called", !shop.product("lamp").equals(shop.product("lamp")));
        server("go on");
        check("going on: it is used again", comes(() -> shop.product("table").equals(shop.product("table"))));
    }

    /** The reply to a line of the text protocol. */
    private static String raw(String line) throws Exception {
        try (var socket = new java.net.Socket("127.0.0.1", 11211)) {
            socket.getOutputStream().write((line + "\r\n").getBytes());
            return new java.io.BufferedReader(new java.io.InputStreamReader(socket.getInputStream())).readLine();
        }
    }

    /** Eight threads. */
    private static class Threads implements AutoCloseable {
        private final java.util.concurrent.ExecutorService pool = Executors.newFixedThreadPool(8);

        List<Future<String>> eachOf(int count, java.util.concurrent.Callable<String> work) throws InterruptedException {
            return pool.invokeAll(java.util.Collections.nCopies(count, work));
        }

        @Override
        public void close() {
            pool.shutdownNow();
        }
    }
}

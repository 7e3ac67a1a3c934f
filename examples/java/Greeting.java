import java.net.InetSocketAddress;
import java.util.Map;
import net.spy.memcached.MemcachedClient;

/**
 * Stores, reads and counts with spymemcached.
 *
 * <p>Run it: {@code mvn -q -f examples/java dependency:copy-dependencies -DoutputDirectory=jars &&
 * java -cp 'examples/java/jars/*' examples/java/Greeting.java 127.0.0.1:11211}
 */
public final class Greeting {
    public static void main(String[] arguments) throws Exception {
        String[] address = (arguments.length > 0 ? arguments[0] : "127.0.0.1:11211").split(":");
        MemcachedClient client =
                new MemcachedClient(
                        new InetSocketAddress(address[0], Integer.parseInt(address[1])));

        client.set("greeting", 60, "hello").get();
        System.out.println("greeting: " + client.get("greeting"));

        client.set("visits", 0, "41").get();
        System.out.println("visits: " + client.incr("visits", 1));

        Map<String, Object> both = client.getBulk("greeting", "visits");
        System.out.println("together: " + both.get("greeting") + " " + both.get("visits"));

        client.shutdown();
    }
}

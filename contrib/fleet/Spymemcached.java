import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Locator;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.FailureMode;
import net.spy.memcached.MemcachedClient;

/** spymemcached's ketama over three servers: the client itself places keys, and is its own fail-over. */
public final class Spymemcached {
    static final List<InetSocketAddress> SERVERS = net.spy.memcached.AddrUtil.getAddresses(
            "127.0.0.1:11211 127.0.0.1:11212 127.0.0.1:11213");

    static MemcachedClient client(List<InetSocketAddress> servers) throws IOException {
        return new MemcachedClient(
                new ConnectionFactoryBuilder()
                        .setLocatorType(Locator.CONSISTENT)
                        .setHashAlg(DefaultHashAlgorithm.KETAMA_HASH)
                        // A server without a connection leaves, and its keys go to the others meanwhile.
                        .setFailureMode(FailureMode.Redistribute)
                        // Milliseconds: above the slowest answer of a server that is well.
                        .setOpTimeout(250)
                        // A connection without two answers in a row is given up.
                        .setTimeoutExceptionThreshold(2)
                        // Seconds between two attempts to connect again.
                        .setMaxReconnectDelay(2)
                        .build(),
                servers);
    }
}

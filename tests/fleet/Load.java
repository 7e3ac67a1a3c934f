import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogManager;
import net.spy.memcached.CachedData;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.transcoders.Transcoder;

/**
 * A client with the configuration of contrib/fleet/Spymemcached.java, for load in another language: {@code java Load SERVER...}.
 * Reads and answers as dalli.rb does.
 */
public final class Load {
    /** Bytes as they are. */
    private static final Transcoder<byte[]> BYTES = new Transcoder<>() {
        @Override
        public boolean asyncDecode(CachedData data) {
            return false;
        }

        @Override
        public CachedData encode(byte[] bytes) {
            return new CachedData(0, bytes, getMaxSize());
        }

        @Override
        public byte[] decode(CachedData data) {
            return data.getData();
        }

        @Override
        public int getMaxSize() {
            return CachedData.MAX_SIZE;
        }
    };

    private final DataInputStream in = new DataInputStream(System.in);
    private final MemcachedClient client;

    private Load(List<InetSocketAddress> servers) throws IOException {
        client = Spymemcached.client(servers);
    }

    public static void main(String[] arguments) throws IOException {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        LogManager.getLogManager().reset();
        List<InetSocketAddress> servers = new ArrayList<>();
        for (String server : arguments) {
            int colon = server.lastIndexOf(':');
            servers.add(new InetSocketAddress(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1))));
        }
        new Load(servers).serve();
        // The client's thread would go on.
        System.exit(0);
    }

    private void serve() throws IOException {
        PrintStream out = new PrintStream(System.out, false);
        for (String line = line(); !line.isEmpty(); line = line()) {
            String[] words = line.split(" ");
            byte[] value = words[0].equals("set") ? new byte[Integer.parseInt(words[2])] : null;
            if (value != null) {
                in.readFully(value);
            }
            try {
                out.write(answer(words[1], value));
            } catch (Exception failure) {
                out.write(("error " + failure).replace('\n', ' ').getBytes());
                out.write('\n');
            }
            out.flush();
        }
    }

    /** The next line; an empty one at the end. */
    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n' && next >= 0; next = in.read()) {
            line.append((char) next);
        }
        return line.toString();
    }

    private byte[] answer(String key, byte[] value) throws Exception {
        if (value != null) {
            boolean isStored = client.set(key, 0, value, BYTES).get(1, TimeUnit.SECONDS);
            return (isStored ? "stored\n" : "not stored\n").getBytes();
        }
        byte[] found = client.get(key, BYTES);
        if (found == null) {
            return "miss\n".getBytes();
        }
        ByteArrayOutputStream reply = new ByteArrayOutputStream();
        reply.write(("value " + found.length + "\n").getBytes());
        reply.write(found);
        return reply.toByteArray();
    }
}

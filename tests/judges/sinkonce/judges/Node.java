package sinkonce.judges;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.transport.Netty4Plugin;

/**
 * One node of OpenSearch in a process of its own, without the distribution around it: argument is its folder; it prints
 * "port=N" once it listens, on loopback only, and ends when its input does.
 */
public final class Node extends org.opensearch.node.Node {
    private Node(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    private static Environment environment(Path folder) {
        Settings settings = Settings.builder()
                .put("path.home", folder.toString())
                .put("path.data", folder.resolve("data").toString())
                .put("path.logs", folder.resolve("logs").toString())
                .put("cluster.name", "judge")
                .put("node.name", "judge")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", "0")
                .put("transport.port", "0")
                .put("http.type", "netty4")
                .put("transport.type", "netty4")
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        return InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "judge");
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]).toAbsolutePath();
        try (Node node = new Node(environment(folder))) {
            node.start();
            int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
            System.out.println("port=" + port);
            System.out.flush();
            while (System.in.read() >= 0) {
                continue;
            }
        }
        System.exit(0);
    }
}

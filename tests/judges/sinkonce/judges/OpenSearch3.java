package sinkonce.judges;

import java.util.ArrayList;
import java.util.List;
import org.apache.hc.core5.http.HttpHost;
import org.opensearch.client.json.jackson.JacksonJsonpMapper;
import org.opensearch.client.opensearch.OpenSearchClient;
import org.opensearch.client.opensearch._types.VersionType;
import org.opensearch.client.opensearch.core.BulkRequest;
import org.opensearch.client.opensearch.core.BulkResponse;
import org.opensearch.client.opensearch.core.bulk.BulkOperation;
import org.opensearch.client.opensearch.core.bulk.BulkResponseItem;
import org.opensearch.client.transport.OpenSearchTransport;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5TransportBuilder;

/** The Java client of OpenSearch 3, which Aiven's sink uses. */
public final class OpenSearch3 implements Judge.Client {
    private final OpenSearchTransport transport;
    private final OpenSearchClient client;

    private OpenSearch3(String url) throws Exception {
        transport = ApacheHttpClient5TransportBuilder.builder(HttpHost.create(url))
                .setMapper(new JacksonJsonpMapper()).build();
        client = new OpenSearchClient(transport);
    }

    private static BulkOperation operation(Judge.Action action) {
        return BulkOperation.of(builder -> switch (action.kind()) {
            case "delete" -> builder.delete(d -> d.index(action.index()).id(action.id()));
            case "create" -> builder.create(c -> c.index(action.index()).id(action.id()).document(action.source()));
            case "update" -> builder.update(u -> u.index(action.index()).id(action.id()).document(action.source())
                    .upsert(action.source()));
            default -> builder.index(i -> {
                i.index(action.index()).id(action.id()).document(action.source());
                return action.version() < 0 ? i : i.version(action.version()).versionType(VersionType.External);
            });
        });
    }

    @Override
    public Judge.Answer bulk(List<Judge.Action> actions) throws Exception {
        BulkRequest.Builder bulk = new BulkRequest.Builder();
        for (Judge.Action action : actions) {
            bulk.operations(operation(action));
        }
        BulkResponse response = client.bulk(bulk.build());
        List<Judge.Item> items = new ArrayList<>();
        for (BulkResponseItem item : response.items()) {
            boolean isFailed = item.error() != null;
            items.add(new Judge.Item(item.operationType().jsonValue(), item.id(), isFailed, item.status(),
                    isFailed ? item.error().type() : ""));
        }
        return new Judge.Answer(response.errors(), items);
    }

    @Override
    public void close() throws Exception {
        transport.close();
    }

    public static void main(String[] arguments) throws Exception {
        Judge.main(new OpenSearch3(arguments[0]), arguments[1], arguments[2]);
    }
}

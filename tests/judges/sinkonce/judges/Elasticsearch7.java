package sinkonce.judges;

import java.util.ArrayList;
import java.util.List;
import org.apache.http.HttpHost;
import org.elasticsearch.action.DocWriteRequest;
import org.elasticsearch.action.bulk.BulkItemResponse;
import org.elasticsearch.action.bulk.BulkRequest;
import org.elasticsearch.action.bulk.BulkResponse;
import org.elasticsearch.action.delete.DeleteRequest;
import org.elasticsearch.action.index.IndexRequest;
import org.elasticsearch.action.update.UpdateRequest;
import org.elasticsearch.client.RequestOptions;
import org.elasticsearch.client.RestClient;
import org.elasticsearch.client.RestHighLevelClient;
import org.elasticsearch.client.RestHighLevelClientBuilder;
import org.elasticsearch.index.VersionType;

/** The high-level REST client of 7.17, which the Confluent sink uses; a fourth argument "compatible" sets its API mode. */
public final class Elasticsearch7 implements Judge.Client {
    private final RestHighLevelClient client;

    private Elasticsearch7(String url, boolean isCompatible) {
        RestClient low = RestClient.builder(HttpHost.create(url)).build();
        client = new RestHighLevelClientBuilder(low).setApiCompatibilityMode(isCompatible).build();
    }

    private static DocWriteRequest<?> request(Judge.Action action) {
        if (action.kind().equals("delete")) {
            return new DeleteRequest(action.index(), action.id());
        }
        if (action.kind().equals("update")) {
            return new UpdateRequest(action.index(), action.id()).doc(action.source()).upsert(action.source());
        }
        IndexRequest index = new IndexRequest(action.index()).id(action.id()).source(action.source());
        if (action.version() >= 0) {
            index.version(action.version()).versionType(VersionType.EXTERNAL);
        }
        return index.opType(action.kind());
    }

    @Override
    public Judge.Answer bulk(List<Judge.Action> actions) throws Exception {
        BulkRequest bulk = new BulkRequest();
        for (Judge.Action action : actions) {
            bulk.add(request(action));
        }
        BulkResponse response = client.bulk(bulk, RequestOptions.DEFAULT);
        List<Judge.Item> items = new ArrayList<>();
        for (BulkItemResponse item : response.getItems()) {
            // The client keeps the type inside its message: [type=..., reason=...].
            String message = item.isFailed() ? item.getFailureMessage() : "";
            String type = message.contains("type=") ? message.replaceAll("(?s).*?type=([a-z_]+).*", "$1") : "";
            items.add(new Judge.Item(item.getOpType().getLowercase(), item.getId(), item.isFailed(), item.status().getStatus(), type));
            if (!item.isFailed() && item.getResponse().getShardInfo().getFailed() != 0) {
                throw new AssertionError("a shard has failed");
            }
        }
        return new Judge.Answer(response.hasFailures(), items);
    }

    @Override
    public void close() throws Exception {
        client.close();
    }

    public static void main(String[] arguments) throws Exception {
        boolean isCompatible = arguments.length > 3 && arguments[3].equals("compatible");
        Judge.main(new Elasticsearch7(arguments[0], isCompatible), arguments[1], arguments[2]);
    }
}

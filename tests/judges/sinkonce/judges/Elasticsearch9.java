package sinkonce.judges;

import co.elastic.clients.elasticsearch.ElasticsearchClient;
import co.elastic.clients.elasticsearch._types.VersionType;
import co.elastic.clients.elasticsearch.core.BulkRequest;
import co.elastic.clients.elasticsearch.core.BulkResponse;
import co.elastic.clients.elasticsearch.core.bulk.BulkOperation;
import co.elastic.clients.elasticsearch.core.bulk.BulkResponseItem;
import co.elastic.clients.json.jackson.JacksonJsonpMapper;
import java.util.ArrayList;
import java.util.List;

/** The Java API client of Elasticsearch 9. */
public final class Elasticsearch9 implements Judge.Client {
    private final ElasticsearchClient client;

    private Elasticsearch9(String url) {
        client = ElasticsearchClient.of(builder -> builder.host(url).jsonMapper(new JacksonJsonpMapper()));
    }

    private static BulkOperation operation(Judge.Action action) {
        return BulkOperation.of(builder -> switch (action.kind()) {
            case "delete" -> builder.delete(d -> d.index(action.index()).id(action.id()));
            case "create" -> builder.create(c -> c.index(action.index()).id(action.id()).document(action.source()));
            case "update" -> builder.update(u -> u.index(action.index()).id(action.id())
                    .action(a -> a.doc(action.source()).upsert(action.source())));
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
        client.close();
    }

    public static void main(String[] arguments) throws Exception {
        Judge.main(new Elasticsearch9(arguments[0]), arguments[1], arguments[2]);
    }
}

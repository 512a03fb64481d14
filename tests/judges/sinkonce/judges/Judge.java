package sinkonce.judges;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What every client must see through sinkonce: each answer parses, with one item per action in the order of the request,
 * and the target has applied each record once.
 *
 * <p>Arguments of the mains: the URL that the client writes to, the URL of the counting target, a name for the topic.
 * One line per scenario; exit 0 when all held.
 */
public final class Judge {
    /** One action; version -1: none, else external versioning. */
    public record Action(String kind, String index, String id, Map<String, Object> source, long version) {}

    /** One item of an answer, as the client has read it. */
    public record Item(String kind, String id, boolean isFailed, int status, String errorType) {}

    public record Answer(boolean hasErrors, List<Item> items) {}

    /** A client under judgement. */
    public interface Client extends AutoCloseable {
        Answer bulk(List<Action> actions) throws Exception;
    }

    private interface Scenario {
        void run() throws Exception;
    }

    private static final String INDEX = "judged";

    private final Client client;
    private final String target;
    private final String topic;
    private final HttpClient http = HttpClient.newHttpClient();
    private int failed;

    private Judge(Client client, String target, String topic) {
        this.client = client;
        this.target = target;
        this.topic = topic;
    }

    public static void main(Client client, String target, String topic) throws Exception {
        Judge judge = new Judge(client, target, topic);
        judge.runAll();
        client.close();
        System.exit(judge.failed == 0 ? 0 : 1);
    }

    private void runAll() {
        run("all new", () -> {
            expect(indexes(0, 5), "ok", "ok", "ok", "ok", "ok");
            expectApplied(0, 5);
        });
        run("all duplicates", () -> {
            int before = number("/_control/bulks");
            expect(indexes(0, 5), "ok", "ok", "ok", "ok", "ok");
            expectApplied(0, 5);
            demand(number("/_control/bulks") == before, "a bulk request without new records reached the target");
        });
        run("half duplicates", () -> {
            expect(indexes(3, 8), "ok", "ok", "ok", "ok", "ok");
            expectApplied(0, 8);
        });
        run("one item 429, then again", () -> {
            order("/_control/fail?status=429&type=es_rejected_execution_exception&id=" + url(id(12)));
            expect(indexes(10, 15), "ok", "ok", "429 es_rejected_execution_exception", "ok", "ok");
            expect(indexes(10, 15), "ok", "ok", "ok", "ok", "ok");
            expectApplied(10, 15);
        });
        run("a delete in the middle, twice", () -> {
            List<Action> actions = List.of(index(20), delete("customer-1-" + topic), index(22));
            order("/_control/put?id=" + url("customer-1-" + topic));
            expect(actions, "ok", "ok", "ok");
            expect(actions, "ok", "404", "ok");
            expectApplied(20, 21);
            expectApplied(22, 23);
        });
        run("create, and again", () -> {
            expect(List.of(create(30), create(31)), "ok", "ok");
            expect(List.of(create(30), create(31)), "ok", "ok");
            expectApplied(30, 32);
        });
        run("create 409, then again", () -> {
            order("/_control/put?id=" + url(id(33)));
            expect(List.of(create(32), create(33)), "ok", "409 version_conflict_engine_exception");
            expect(List.of(create(32), create(33)), "ok", "ok");
            expectApplied(32, 34);
        });
        run("a malformed document, then again", () -> {
            order("/_control/fail?status=400&type=mapper_parsing_exception&id=" + url(id(41)));
            expect(indexes(40, 43), "ok", "400 mapper_parsing_exception", "ok");
            order("/_control/fail?status=400&type=mapper_parsing_exception&id=" + url(id(41)));
            expect(indexes(40, 43), "ok", "400 mapper_parsing_exception", "ok");
            expectApplied(40, 41);
            expectApplied(42, 43);
            demand(applied(id(41)) == 0, "the malformed document was applied");
        });
        run("external versions, one of them old", () -> {
            List<Action> actions = List.of(versioned(50), versioned(51));
            order("/_control/put?version=60&id=" + url("customer-50-" + topic));
            expect(actions, "409 version_conflict_engine_exception", "ok");
            expect(actions, "ok", "ok");
            demand(applied("customer-50-" + topic) == 1 && applied("customer-51-" + topic) == 1, "not once");
        });
        run("update with upsert, and again", () -> {
            expect(List.of(update(60), update(61)), "ok", "ok");
            expect(List.of(update(60), update(61)), "ok", "ok");
            demand(applied("customer-60-" + topic) == 1 && applied("customer-61-" + topic) == 1, "not once");
        });
        run("one record three times in one request", () -> {
            expect(List.of(index(70), index(70), index(71), index(70)), "ok", "ok", "ok", "ok");
            expectApplied(70, 72);
        });
        run("no id, coordinates in the source, and again", () -> {
            Action action = new Action("index", INDEX, null, source(80), -1);
            expect(List.of(action), "ok");
            expect(List.of(action), "ok");
            expectApplied(80, 81);
        });
        run("a record alone, then twice in one request", () -> {
            expect(List.of(index(75)), "ok");
            expect(List.of(index(75), index(75)), "ok", "ok");
            expectApplied(75, 76);
        });
        run("the whole request 429 and 503, then again", () -> {
            for (int status : new int[] {429, 503}) {
                order("/_control/fail?times=9&status=" + status); // more often than a client tries by itself
                boolean isThrown = false;
                try {
                    client.bulk(indexes(90, 92));
                } catch (Exception e) {
                    isThrown = true;
                }
                demand(isThrown, "a refusal of the whole request was read as a success");
            }
            order("/_control/fail?times=0");
            expect(indexes(90, 92), "ok", "ok");
            expectApplied(90, 92);
        });
        run("a document of odd bytes", () -> {
            Map<String, Object> source = source(95);
            source.put("s", "a,\nb\"\\\u00e9\ud83d\ude00");
            source.put("amt", 9007199254740993L);
            Action action = new Action("index", INDEX, id(95), source, -1);
            expect(List.of(action, index(96)), "ok", "ok");
            expect(List.of(action, index(97)), "ok", "ok");
            expectApplied(95, 98);
        });
    }

    private void run(String name, Scenario scenario) {
        try {
            scenario.run();
            System.out.println("ok      " + name);
        } catch (Exception | AssertionError e) {
            failed++;
            System.out.println("FAILED  " + name + ": " + e);
            for (Throwable cause = e.getCause(); cause != null; cause = cause.getCause()) {
                System.out.println("        by " + cause);
            }
        }
    }

    // ---- actions

    private String id(long offset) {
        return topic + "+0+" + offset;
    }

    private Map<String, Object> source(long offset) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("amt", offset * 7);
        fields.put("__topic", topic);
        fields.put("__partition", 0);
        fields.put("__offset", offset);
        return fields;
    }

    private Action index(long offset) {
        return new Action("index", INDEX, id(offset), Map.of("amt", offset), -1);
    }

    private Action create(long offset) {
        return new Action("create", INDEX, id(offset), Map.of("@timestamp", 1700000000000L + offset), -1);
    }

    private Action update(long offset) {
        return new Action("update", INDEX, "customer-" + offset + "-" + topic, source(offset), -1);
    }

    private Action versioned(long offset) {
        return new Action("index", INDEX, "customer-" + offset + "-" + topic, source(offset), offset);
    }

    private Action delete(String id) {
        return new Action("delete", INDEX, id, null, -1);
    }

    private List<Action> indexes(long from, long to) {
        List<Action> actions = new ArrayList<>();
        for (long offset = from; offset < to; offset++) {
            actions.add(index(offset));
        }
        return actions;
    }

    // ---- demands

    /** Each of EXPECTED: "ok", or the status with which the item fails, and its error's type. */
    private void expect(List<Action> actions, String... expected) throws Exception {
        Answer answer = client.bulk(actions);
        List<String> seen = new ArrayList<>();
        boolean hasErrors = false;
        demand(answer.items().size() == actions.size(), "%d items for %d actions", answer.items().size(),
                actions.size());
        for (int i = 0; i < actions.size(); i++) {
            Item item = answer.items().get(i);
            Action action = actions.get(i);
            demand(item.kind().equals(action.kind()), "item %d is %s, not %s", i, item.kind(), action.kind());
            demand(item.id() != null && (action.id() == null || item.id().equals(action.id())), "item %d is of %s, not %s",
                    i, item.id(), action.id());
            hasErrors |= item.isFailed();
            seen.add(item.isFailed() ? item.status() + " " + item.errorType()
                    : item.status() / 100 == 2 ? "ok" : "" + item.status());
        }
        demand(seen.equals(Arrays.asList(expected)), "saw %s, not %s", seen, Arrays.asList(expected));
        demand(answer.hasErrors() == hasErrors, "errors is %s", answer.hasErrors());
    }

    private void expectApplied(long from, long to) throws Exception {
        for (long offset = from; offset < to; offset++) {
            int count = applied(id(offset));
            demand(count == 1, "%s was applied %d times", id(offset), count);
        }
    }

    private static void demand(boolean holds, String what, Object... more) {
        if (!holds) {
            throw new AssertionError(String.format(what, more));
        }
    }

    // ---- the target

    private int applied(String id) throws Exception {
        return number("/_control/count?id=" + url(id));
    }

    private int number(String path) throws Exception {
        return Integer.parseInt(ask(HttpRequest.newBuilder(URI.create(target + path)).build()));
    }

    private void order(String path) throws Exception {
        ask(HttpRequest.newBuilder(URI.create(target + path)).POST(HttpRequest.BodyPublishers.noBody()).build());
    }

    private String ask(HttpRequest request) throws Exception {
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
        demand(response.statusCode() == 200, "the target answered %d", response.statusCode());
        return response.body();
    }

    private static String url(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}

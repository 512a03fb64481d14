package sinkonce.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * The records of one request, in one of the forms in which sinks send many: a JSON array, lines, or actions of a bulk
 * request, each named by topic, partition and offset.
 */
class Batch {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String form;
    private final List<SinkRecord> records;
    private final List<byte[]> values = new ArrayList<>();

    Batch(String form, List<SinkRecord> records) throws IOException {
        this.form = form;
        this.records = records;
        for (SinkRecord record : records)
            values.add(JSON.writeValueAsBytes(record.value()));
    }

    static String key(SinkRecord record) {
        return record.originalTopic() + "/" + record.originalKafkaPartition() + "/" + record.originalKafkaOffset();
    }

    int size() {
        return records.size();
    }

    String key(int i) {
        return key(records.get(i));
    }

    byte[] value(int i) {
        return values.get(i);
    }

    byte[] body() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int i = 0; i < size(); i++) {
            if (form.equals("array"))
                out.write(i == 0 ? '[' : ',');
            else if (form.equals("bulk"))
                out.write(("{\"index\":{\"_index\":\"orders\",\"_id\":\"" + id(i) + "\"}}\n")
                        .getBytes(StandardCharsets.UTF_8));
            out.write(values.get(i));
            if (!form.equals("array"))
                out.write('\n');
        }
        if (form.equals("array"))
            out.write(']');
        return out.toByteArray();
    }

    /** PARTITION:FIRST-LAST of each partition in it. */
    String ranges() {
        Map<Integer, String> firsts = new TreeMap<>();
        Map<Integer, Long> lasts = new TreeMap<>();
        for (SinkRecord record : records) {
            firsts.putIfAbsent(record.originalKafkaPartition(), Long.toString(record.originalKafkaOffset()));
            lasts.put(record.originalKafkaPartition(), record.originalKafkaOffset());
        }
        List<String> ranges = new ArrayList<>();
        firsts.forEach((partition, first) -> ranges.add(partition + ":" + first + "-" + lasts.get(partition)));
        return String.join(" ", ranges);
    }

    /**
     * Which records a successful answer acknowledges.  Of a bulk answer each item counts by itself; one that does not
     * belong to the action at its place is a mistake that the task does not survive.
     */
    List<Integer> acknowledged(byte[] answer) throws IOException {
        List<Integer> found = new ArrayList<>();
        JsonNode document = form.equals("bulk") ? JSON.readTree(answer) : null;
        if (document != null && document.path("items").size() != size())
            throw new ConnectException(document.path("items").size() + " items for " + size() + " actions");
        for (int i = 0; i < size(); i++)
            if (document == null || isSuccess(document.get("items").get(i).path("index"), id(i)))
                found.add(i);
        if (document != null && document.path("errors").asBoolean() == (found.size() == size()))
            throw new ConnectException("\"errors\" does not say whether an item failed");
        return found;
    }

    private static boolean isSuccess(JsonNode item, String id) {
        boolean isSuccess = item.path("status").asInt(999) < 300;
        if (!item.path("_id").asText().equals(id) || item.has("error") == isSuccess)
            throw new ConnectException("this is no item for " + id + ": " + item);
        return isSuccess;
    }

    private String id(int i) {
        return key(i).replace('/', '+');
    }
}

package sinkonce.e2e;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/**
 * A small HTTP sink.  It sends one record per request, in the two forms that HTTP sinks commonly send: the JSON value
 * with its coordinates inside, or the coordinates in headers; or many at once, as Batch says.
 */
public class HttpSinkConnector extends SinkConnector {
    static final ConfigDef CONFIG = new ConfigDef()
            .define("http.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where each record is posted to")
            .define("http.timeout.ms", ConfigDef.Type.INT, 30000, ConfigDef.Importance.MEDIUM,
                    "how long an answer is waited for")
            .define("retry.backoff.ms", ConfigDef.Type.LONG, 3000L, ConfigDef.Importance.MEDIUM,
                    "how long the worker waits before it delivers a failed batch again")
            .define("form", ConfigDef.Type.STRING, "body",
                    ConfigDef.ValidString.in("body", "headers", "array", "lines", "bulk"), ConfigDef.Importance.MEDIUM,
                    "body: the value as JSON; headers: the coordinates as x-kafka-* headers too, and no offer of h2c; "
                            + "array, lines, bulk: many records in one request")
            .define("batch.max.size", ConfigDef.Type.INT, 500, ConfigDef.Importance.MEDIUM,
                    "how many records a request of several holds at most")
            .define("ack.log", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW,
                    "file that takes key and hash of each record whose answer says success")
            .define("sent.log", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW,
                    "file that takes the offsets of each request before it is sent");

    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> properties) {
        settings = properties;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return HttpSinkTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int count) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int i = 0; i < count; i++)
            configs.add(settings);
        return configs;
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public String version() {
        return "1";
    }
}

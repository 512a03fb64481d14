package sinkonce.e2e;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A small SQL sink: one statement per record, many of them in a transaction. */
public class JdbcSinkConnector extends SinkConnector {
    static final ConfigDef CONFIG = new ConfigDef()
            .define("jdbc.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the database")
            .define("jdbc.statement", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH,
                    "what is done with each record; its parameters: topic, partition, offset, value")
            .define("retry.backoff.ms", ConfigDef.Type.LONG, 3000L, ConfigDef.Importance.MEDIUM,
                    "how long the worker waits before it delivers a failed batch again")
            .define("batch.max.size", ConfigDef.Type.INT, 500, ConfigDef.Importance.MEDIUM,
                    "how many records a transaction holds at most");

    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> properties) {
        settings = properties;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return JdbcSinkTask.class;
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

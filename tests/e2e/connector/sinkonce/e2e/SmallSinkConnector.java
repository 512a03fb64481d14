package sinkonce.e2e;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** A sink whose tasks all have its own settings. */
abstract class SmallSinkConnector extends SinkConnector {
    private final Class<? extends Task> task;
    private final ConfigDef config;
    private Map<String, String> settings;

    SmallSinkConnector(Class<? extends Task> task, ConfigDef config) {
        this.task = task;
        this.config = config;
    }

    /** What each of them needs. */
    static ConfigDef settings() {
        return new ConfigDef()
                .define("retry.backoff.ms", ConfigDef.Type.LONG, 3000L, ConfigDef.Importance.MEDIUM,
                        "how long the worker waits before it delivers a failed batch again")
                .define("batch.max.size", ConfigDef.Type.INT, 500, ConfigDef.Importance.MEDIUM,
                        "how many records a request or a transaction of several holds at most");
    }

    @Override
    public void start(Map<String, String> properties) {
        settings = properties;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return task;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int count) {
        return Collections.nCopies(count, settings);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return config;
    }

    @Override
    public String version() {
        return "1";
    }
}

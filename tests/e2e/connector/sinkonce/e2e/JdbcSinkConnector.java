package sinkonce.e2e;

import org.apache.kafka.common.config.ConfigDef;

/** A small SQL sink: one statement per record, many of them in a transaction. */
public class JdbcSinkConnector extends SmallSinkConnector {
    static final ConfigDef CONFIG = settings()
            .define("jdbc.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the database")
            .define("jdbc.statement", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH,
                    "what is done with each record; its parameters: topic, partition, offset, value");

    public JdbcSinkConnector() {
        super(JdbcSinkTask.class, CONFIG);
    }
}

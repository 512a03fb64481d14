package sinkonce.e2e;

import org.apache.kafka.common.config.ConfigDef;

/**
 * A small HTTP sink.  It sends one record per request, in the two forms that HTTP sinks commonly send: the JSON value
 * with its coordinates inside, or the coordinates in headers; or many at once, as Batch says.
 */
public class HttpSinkConnector extends SmallSinkConnector {
    static final ConfigDef CONFIG = settings()
            .define("http.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where each record is posted to")
            .define("http.timeout.ms", ConfigDef.Type.INT, 30000, ConfigDef.Importance.MEDIUM,
                    "how long an answer is waited for")
            .define("form", ConfigDef.Type.STRING, "body",
                    ConfigDef.ValidString.in("body", "headers", "array", "lines", "bulk"), ConfigDef.Importance.MEDIUM,
                    "body: the value as JSON; headers: the coordinates as x-kafka-* headers too, and no offer of h2c; "
                            + "array, lines, bulk: many records in one request")
            .define("ack.log", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW,
                    "file that takes key and hash of each record whose answer says success")
            .define("sent.log", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW,
                    "file that takes the offsets of each request before it is sent");

    public HttpSinkConnector() {
        super(HttpSinkTask.class, CONFIG);
    }
}

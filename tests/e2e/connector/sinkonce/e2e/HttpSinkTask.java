package sinkonce.e2e;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * Posts each record with the client of the JDK and waits for the answer.  A status of 400 or more, an I/O error or
 * a time-out is a RetriableException: the worker then delivers the whole batch again, the records that had
 * succeeded included.  The record that fails is the only one on the wire.
 */
public class HttpSinkTask extends SinkTask {
    private final ObjectMapper json = new ObjectMapper();
    private AbstractConfig config;
    private HttpClient client;
    private OutputStream acknowledged;

    @Override
    public void start(Map<String, String> properties) {
        config = new AbstractConfig(HttpSinkConnector.CONFIG, properties, false);
        HttpClient.Version version =
                isHeaderForm() ? HttpClient.Version.HTTP_1_1 : HttpClient.Version.HTTP_2;
        client = HttpClient.newBuilder().version(version).connectTimeout(Duration.ofSeconds(5)).build();
        try {
            String log = config.getString("ack.log");
            acknowledged = log.isEmpty() ? OutputStream.nullOutputStream() : new FileOutputStream(log, true);
        } catch (IOException e) {
            throw new ConnectException(e);
        }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        for (SinkRecord record : records) {
            try {
                byte[] body = json.writeValueAsBytes(record.value());
                int status = client.send(request(record, body), HttpResponse.BodyHandlers.discarding()).statusCode();
                if (status >= 400)
                    throw new IOException("status " + status);
                acknowledged.write((key(record) + "\t" + hash(body) + "\n").getBytes(StandardCharsets.US_ASCII));
            } catch (IOException e) {
                context.timeout(config.getLong("retry.backoff.ms"));
                throw new RetriableException(key(record) + ": " + e, e);
            } catch (InterruptedException e) {
                throw new ConnectException(e);
            }
        }
    }

    @Override
    public void stop() {
        try {
            if (acknowledged != null)
                acknowledged.close();
        } catch (IOException e) {
            throw new ConnectException(e);
        }
    }

    @Override
    public String version() {
        return "1";
    }

    private boolean isHeaderForm() {
        return config.getString("form").equals("headers");
    }

    private static String key(SinkRecord record) {
        return record.originalTopic() + "/" + record.originalKafkaPartition() + "/" + record.originalKafkaOffset();
    }

    /* As in the journal of the counting target. */
    private static String hash(byte[] body) {
        CRC32 crc = new CRC32();
        crc.update(body);
        return String.format("%08x-%d", crc.getValue(), body.length);
    }

    private HttpRequest request(SinkRecord record, byte[] body) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(config.getString("http.url")))
                .timeout(Duration.ofMillis(config.getInt("http.timeout.ms")))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body));
        if (isHeaderForm())
            builder.header("x-kafka-topic", record.originalTopic())
                    .header("x-kafka-partition", Integer.toString(record.originalKafkaPartition()))
                    .header("x-kafka-offset", Long.toString(record.originalKafkaOffset()));
        return builder.build();
    }
}

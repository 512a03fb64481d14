package sinkonce.e2e;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * Posts records one by one, or many together, with the client of the JDK and waits for the answer.  A status of 400
 * or more, an I/O error, a time-out or a failed item is a RetriableException: the worker then delivers all records
 * again, those that had succeeded included.  The request that fails is the only one on the wire.
 */
public class HttpSinkTask extends SinkTask {
    private AbstractConfig config;
    private HttpClient client;
    private OutputStream acknowledged;
    private OutputStream sent;

    @Override
    public void start(Map<String, String> properties) {
        config = new AbstractConfig(HttpSinkConnector.CONFIG, properties, false);
        HttpClient.Version version =
                isHeaderForm() ? HttpClient.Version.HTTP_1_1 : HttpClient.Version.HTTP_2;
        client = HttpClient.newBuilder().version(version).connectTimeout(Duration.ofSeconds(5)).build();
        acknowledged = log("ack.log");
        sent = log("sent.log");
    }

    private OutputStream log(String setting) {
        try {
            String path = config.getString(setting);
            return path.isEmpty() ? OutputStream.nullOutputStream() : new FileOutputStream(path, true);
        } catch (IOException e) {
            throw new ConnectException(e);
        }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        List<SinkRecord> all = new ArrayList<>(records);
        int size = isBatchForm() ? config.getInt("batch.max.size") : 1;
        for (int from = 0; from < all.size(); from += size)
            send(all.subList(from, Math.min(from + size, all.size())));
    }

    private void send(List<SinkRecord> records) {
        SinkRecord first = records.get(0);
        try {
            Batch batch = new Batch(config.getString("form"), records);
            sent.write((batch.ranges() + "\n").getBytes(StandardCharsets.US_ASCII));
            HttpResponse<byte[]> answer =
                    client.send(request(first, isBatchForm() ? batch.body() : batch.value(0)),
                            HttpResponse.BodyHandlers.ofByteArray());
            if (answer.statusCode() >= 400)
                throw new IOException("status " + answer.statusCode());
            List<Integer> done = batch.acknowledged(answer.body());
            for (int i : done)
                acknowledged.write(
                        (batch.key(i) + "\t" + hash(batch.value(i)) + "\n").getBytes(StandardCharsets.US_ASCII));
            if (done.size() < batch.size())
                throw new IOException(batch.size() - done.size() + " items failed");
        } catch (IOException e) {
            context.timeout(config.getLong("retry.backoff.ms"));
            throw new RetriableException(Batch.key(first) + ": " + e, e);
        } catch (InterruptedException e) {
            throw new ConnectException(e);
        }
    }

    @Override
    public void stop() {
        try {
            if (acknowledged != null)
                acknowledged.close();
            if (sent != null)
                sent.close();
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

    private boolean isBatchForm() {
        return !config.getString("form").equals("body") && !isHeaderForm();
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

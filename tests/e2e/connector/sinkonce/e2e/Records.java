package sinkonce.e2e;

import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Creates and deletes topics and fills them, told so on standard input:
 *
 *     create TOPIC PARTITIONS
 *     produce TOPIC PARTITIONS COUNT MARK FILE     one key a line is added to FILE; MARK goes into each body
 *     delete TOPIC
 *
 * Each line is answered with "ok", or with what went wrong.
 */
public class Records {
    private final Map<String, Object> settings;
    private final Admin admin;

    private Records(Map<String, Object> settings) {
        this.settings = settings;
        admin = Admin.create(settings);
    }

    public static void main(String[] arguments) throws Exception {
        Records records = new Records(Map.of("bootstrap.servers", arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                records.obey(line.split(" "));
                System.out.println("ok");
            } catch (ExecutionException e) {
                System.out.println(e.getCause());
            }
        }
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                admin.createTopics(List.of(new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1))).all().get();
                break;
            case "produce":
                produce(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), words[4], words[5]);
                break;
            case "delete":
                admin.deleteTopics(List.of(words[1])).all().get();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /* A producer of its own for each call: one that knew a topic before its deletion numbers its batches wrongly.
     * One request at a time, because a partition that has just been created may refuse the first of several. */
    private void produce(String topic, int partitions, int count, String mark, String file) throws Exception {
        Map<String, Object> own = new HashMap<>(settings);
        own.put("max.in.flight.requests.per.connection", 1);
        own.put("delivery.timeout.ms", 60000);
        own.put("request.timeout.ms", 20000);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], String> producer =
                new KafkaProducer<>(own, new ByteArraySerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++)
                sent.add(producer.send(new ProducerRecord<>(topic, i % partitions, null, value(i, mark))));
        }
        try (PrintWriter out = new PrintWriter(new FileWriter(file, true))) {
            for (Future<RecordMetadata> one : sent)
                out.println(topic + "/" + one.get().partition() + "/" + one.get().offset());
        }
    }

    private static String value(int id, String mark) {
        return "{\"id\":" + id + ",\"amt\":9007199254740993,\"mark\":\"" + mark + "\",\"s\":\"a,\\nb\",\"pad\":\""
                + "x".repeat(300) + "\"}";
    }
}

package sinkonce.e2e;

import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Creates and deletes topics and fills them, told so on standard input:
 *
 *     create TOPIC PARTITIONS
 *     produce TOPIC PARTITIONS COUNT MARK FILE     one key a line is added to FILE; MARK goes into each body
 *     transact TOPIC PARTITIONS COUNT MARK commit|abort      the same in one transaction, which names no key
 *     read TOPIC PARTITIONS ISOLATION FILE         FILE takes key and value of each record up to the end
 *     open TOPIC PARTITIONS                        how many offsets lie in transactions that are still open
 *     metric PORT NAME ATTRIBUTE                   the sum over the MBeans of that name pattern, by JMX
 *     delete TOPIC
 *
 * Each line is answered with "ok" and what was asked for, or with what went wrong.
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
                System.out.println(("ok " + records.obey(line.split(" "))).trim());
            } catch (ExecutionException e) {
                System.out.println(e.getCause());
            } catch (KafkaException | IOException e) {
                System.out.println(e);
            }
        }
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                admin.createTopics(List.of(new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1))).all().get();
                return "";
            case "produce":
                produce(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), words[4], words[5]);
                return "";
            case "transact":
                transact(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), words[4],
                        words[5].equals("commit"));
                return "";
            case "read":
                read(partitions(words[1], words[2]), words[3], words[4]);
                return "";
            case "open":
                return Long.toString(open(partitions(words[1], words[2])));
            case "metric":
                return Double.toString(Metrics.sum(Integer.parseInt(words[1]), words[2], words[3]));
            case "delete":
                admin.deleteTopics(List.of(words[1])).all().get();
                return "";
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

    /* What is aborted is flushed first: it lies in the log like any other record. */
    private void transact(String topic, int partitions, int count, String mark, boolean isCommitted) {
        Map<String, Object> own = new HashMap<>(settings);
        own.put("transactional.id", "records-" + topic);
        own.put("linger.ms", 20);
        try (KafkaProducer<byte[], String> producer =
                new KafkaProducer<>(own, new ByteArraySerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int i = 0; i < count; i++)
                producer.send(new ProducerRecord<>(topic, i % partitions, null, value(i, mark, isCommitted ? 300 : 0)));
            producer.flush();
            if (isCommitted)
                producer.commitTransaction();
            else
                producer.abortTransaction();
        }
    }

    private static List<TopicPartition> partitions(String topic, String count) {
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(count); i++)
            all.add(new TopicPartition(topic, i));
        return all;
    }

    private KafkaConsumer<byte[], String> consumer(String isolation) {
        Map<String, Object> own = new HashMap<>(settings);
        own.put("isolation.level", isolation);
        own.put("enable.auto.commit", false);
        own.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(own, new ByteArrayDeserializer(), new StringDeserializer());
    }

    private void read(List<TopicPartition> partitions, String isolation, String file) throws IOException {
        try (KafkaConsumer<byte[], String> consumer = consumer(isolation);
                PrintWriter out = new PrintWriter(new FileWriter(file))) {
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue()))
                for (ConsumerRecord<byte[], String> record : consumer.poll(Duration.ofMillis(200)))
                    out.println(record.topic() + "/" + record.partition() + "/" + record.offset() + "\t"
                            + record.value());
        }
    }

    private long open(List<TopicPartition> partitions) {
        long[] ends = new long[2];
        for (int i = 0; i < 2; i++)
            try (KafkaConsumer<byte[], String> consumer = consumer(i == 0 ? "read_committed" : "read_uncommitted")) {
                for (long end : consumer.endOffsets(partitions).values())
                    ends[i] += end;
            }
        return ends[1] - ends[0];
    }

    private static String value(int id, String mark) {
        return value(id, mark, 300);
    }

    private static String value(int id, String mark, int padding) {
        return "{\"id\":" + id + ",\"amt\":9007199254740993,\"mark\":\"" + mark + "\",\"s\":\"a,\\nb\",\"pad\":\""
                + "x".repeat(padding) + "\"}";
    }
}

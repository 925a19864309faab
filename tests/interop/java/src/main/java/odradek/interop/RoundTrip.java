package odradek.interop;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What a Java program does with a broker: topics, records in every compression, a group that
 * grows and shrinks, offsets by timestamp, administration. Ends with exit code 1 and a sentence
 * at the first thing that is not as it should be.
 *
 * <p>Arguments: the bootstrap server and the name of a topic that does not exist.
 */
public final class RoundTrip {
    private static final int PARTITIONS = 4;
    private static final int RECORDS_PER_COMPRESSION = 1000;
    private static final long FIRST_TIMESTAMP_MS = System.currentTimeMillis() - 3_600_000;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long WAIT_NANOS_MAX = Duration.ofSeconds(120).toNanos();

    private final String bootstrap;
    private final String topic;

    private RoundTrip(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        RoundTrip roundTrip = new RoundTrip(arguments[0], arguments[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            roundTrip.createTopic(admin);
            int sent = roundTrip.produceInEveryCompression();
            roundTrip.consumeByAGroupThatGrowsAndShrinks(admin, sent);
            roundTrip.findOffsets(admin);
            roundTrip.deleteRecords(admin);
            System.out.println("produced and consumed " + sent + " records");
        }
    }

    private void createTopic(Admin admin) throws Exception {
        NewTopic wanted = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "-1"));
        admin.createTopics(List.of(wanted)).all().get();
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(PARTITIONS))).all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        String retention =
                admin.describeConfigs(List.of(resource)).all().get().get(resource)
                        .get("retention.ms").value();
        check(retention.equals("-1"), "retention.ms is " + retention);
    }

    private int produceInEveryCompression() throws Exception {
        int sent = 0;
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Map<String, Object> settings = Map.of(
                    "bootstrap.servers", bootstrap,
                    "enable.idempotence", "true",
                    "acks", "all",
                    "compression.type", compression,
                    "linger.ms", "5",
                    "key.serializer", StringSerializer.class,
                    "value.serializer", StringSerializer.class);
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
                for (int i = 0; i < RECORDS_PER_COMPRESSION; i++, sent++) {
                    ProducerRecord<String, String> record = new ProducerRecord<>(
                            topic, sent % PARTITIONS, FIRST_TIMESTAMP_MS + sent, "key-" + sent,
                            Integer.toString(sent));
                    record.headers().add("number", Integer.toString(sent).getBytes(
                            StandardCharsets.UTF_8));
                    futures.add(producer.send(record));
                }
            }
            for (Future<RecordMetadata> future : futures) {
                check(future.get().hasOffset(), "no offset for a record in " + compression);
            }
        }
        return sent;
    }

    private void consumeByAGroupThatGrowsAndShrinks(Admin admin, int expected) throws Exception {
        String group = "group-" + topic;
        Map<Integer, List<Integer>> read = new HashMap<>();
        KafkaConsumer<String, String> first = consumer(group);
        KafkaConsumer<String, String> second = consumer(group);
        first.subscribe(List.of(topic));
        pollUntilOwning(read, Map.of(first, PARTITIONS));
        second.subscribe(List.of(topic));
        pollUntilOwning(read, Map.of(first, PARTITIONS / 2, second, PARTITIONS / 2));
        GroupState state =
                admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState();
        check(state == GroupState.STABLE, "the group is " + state);
        second.commitSync();
        second.close();
        pollUntilOwning(read, Map.of(first, PARTITIONS));
        long started = System.nanoTime();
        while (read.values().stream().mapToInt(List::size).sum() < expected) {
            check(System.nanoTime() - started < WAIT_NANOS_MAX, "records do not come");
            poll(first, read);
        }
        first.commitSync();
        first.close();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            List<Integer> numbers = read.get(partition);
            check(numbers.size() == expected / PARTITIONS,
                    numbers.size() + " records in partition " + partition);
            for (int i = 0; i < numbers.size(); i++) {
                check(numbers.get(i) == i * PARTITIONS + partition, "disorder at " + i);
            }
        }
        check(admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)),
                "the group is not listed");
        long committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition(topic, 0)).offset();
        check(committed == expected / PARTITIONS, "committed " + committed);
        admin.deleteConsumerGroups(List.of(group)).all().get();
    }

    private KafkaConsumer<String, String> consumer(String group) {
        return new KafkaConsumer<>(Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", group,
                "auto.offset.reset", "earliest",
                "isolation.level", "read_committed",
                "heartbeat.interval.ms", "200",
                "max.poll.records", "100",
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class));
    }

    private void pollUntilOwning(
            Map<Integer, List<Integer>> read, Map<KafkaConsumer<String, String>, Integer> counts) {
        long started = System.nanoTime();
        Set<TopicPartition> owned = new HashSet<>();
        boolean balanced = false;
        while (!balanced) {
            check(System.nanoTime() - started < WAIT_NANOS_MAX, "the group does not settle");
            owned.clear();
            balanced = true;
            for (Map.Entry<KafkaConsumer<String, String>, Integer> entry : counts.entrySet()) {
                poll(entry.getKey(), read);
                owned.addAll(entry.getKey().assignment());
                balanced &= entry.getKey().assignment().size() == entry.getValue();
            }
            balanced &= owned.size() == PARTITIONS;
        }
    }

    private static void poll(
            KafkaConsumer<String, String> consumer, Map<Integer, List<Integer>> read) {
        for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
            int number = Integer.parseInt(record.value());
            String header = new String(
                    record.headers().lastHeader("number").value(), StandardCharsets.UTF_8);
            check(record.key().equals("key-" + number), "key " + record.key());
            check(header.equals(record.value()), "header " + header);
            check(record.timestamp() == FIRST_TIMESTAMP_MS + number, "timestamp");
            check(record.timestampType() == TimestampType.CREATE_TIME, "timestamp type");
            read.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(number);
        }
    }

    private void findOffsets(Admin admin) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 1);
        long wanted = FIRST_TIMESTAMP_MS + 10 * PARTITIONS + 1;
        try (KafkaConsumer<String, String> consumer = consumer("unused")) {
            OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(partition, wanted)).get(partition);
            check(found.offset() == 10 && found.timestamp() == wanted, "found " + found);
        }
        for (Map.Entry<OffsetSpec, Long> entry : Map.of(
                OffsetSpec.earliest(), 0L,
                OffsetSpec.latest(), 1250L,
                OffsetSpec.maxTimestamp(), 1249L,
                OffsetSpec.forTimestamp(wanted), 10L).entrySet()) {
            long offset = admin.listOffsets(Map.of(partition, entry.getKey()))
                    .partitionResult(partition).get().offset();
            check(offset == entry.getValue(), entry.getKey() + " is " + offset);
        }
    }

    private void deleteRecords(Admin admin) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 3);
        long low = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(7)))
                .lowWatermarks().get(partition).get().lowWatermark();
        check(low == 7, "low watermark " + low);
        try (KafkaConsumer<String, String> consumer = consumer("unused")) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            check(consumer.position(partition) == 7, "the start did not move");
        }
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}

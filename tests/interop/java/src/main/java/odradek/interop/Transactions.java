package odradek.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What a Java program does with transactions: commits and aborts over several partitions, offsets
 * within a transaction, fencing of an older producer, and what readers of both isolation levels
 * see of it. Ends with exit code 1 and a sentence at the first thing that is not as it should be.
 *
 * <p>Arguments: the bootstrap server, the name of a topic that does not exist, and the group
 * protocol of its consumer.
 */
public final class Transactions {
    private static final int PARTITIONS = 3;
    private static final int RECORDS = 30;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long WAIT_NANOS_MAX = Duration.ofSeconds(120).toNanos();

    private final String bootstrap;
    private final String input;
    private final String output;
    private final String protocol;

    private Transactions(String[] arguments) {
        bootstrap = arguments[0];
        input = arguments[1];
        output = arguments[1] + "-out";
        protocol = arguments[2];
    }

    public static void main(String[] arguments) throws Exception {
        Transactions program = new Transactions(arguments);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.createTopics(List.of(
                    new NewTopic(program.input, PARTITIONS, (short) 1),
                    new NewTopic(program.output, PARTITIONS, (short) 1))).all().get();
            program.commitAndAbort();
            program.copyWithOffsets(admin);
            program.fence(admin);
        }
        System.out.println("read " + program.read(program.output, "read_committed").size()
                + " committed of " + program.read(program.output, "read_uncommitted").size());
    }

    /** One transaction is committed and one aborted: a committed reader sees the first. */
    private void commitAndAbort() {
        try (KafkaProducer<String, String> producer = producer("first-" + input)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, input, "committed");
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer, input, "aborted");
            producer.flush();
            producer.abortTransaction();
        }
        List<String> committed = read(input, "read_committed");
        check(committed.size() == RECORDS, committed.size() + " records are committed");
        check(committed.stream().allMatch(value -> value.startsWith("committed")),
                "a committed reader sees what was aborted");
        int all = read(input, "read_uncommitted").size();
        check(all == 2 * RECORDS, "an uncommitted reader sees " + all);
    }

    /** Copies in two transactions, the first of them aborted: nothing is copied twice. */
    private void copyWithOffsets(Admin admin) throws Exception {
        String group = "group-" + input;
        try (KafkaProducer<String, String> producer = producer("second-" + input)) {
            producer.initTransactions();
            for (boolean commits : new boolean[] {false, true}) {
                try (KafkaConsumer<String, String> consumer = consumer(group, "read_committed")) {
                    consumer.subscribe(List.of(input));
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    producer.beginTransaction();
                    for (ConsumerRecord<String, String> record : take(consumer, RECORDS)) {
                        producer.send(new ProducerRecord<>(
                                output, record.partition(), record.key(), record.value()));
                        offsets.put(new TopicPartition(input, record.partition()),
                                new OffsetAndMetadata(record.offset() + 1, "copied"));
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.flush(); // an abort drops what was not sent
                    if (commits) {
                        producer.commitTransaction();
                    } else {
                        producer.abortTransaction();
                    }
                }
            }
        }
        waitUntilCommitted(admin, "second-" + input);
        Map<TopicPartition, OffsetAndMetadata> found =
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        check(found.size() == PARTITIONS, "offsets of " + found.keySet());
        for (OffsetAndMetadata offset : found.values()) {
            check(offset.offset() == RECORDS / PARTITIONS, "committed " + offset);
            check(offset.metadata().equals("copied"), "metadata " + offset.metadata());
        }
        int copied = read(output, "read_committed").size();
        check(copied == RECORDS, copied + " records are copied");
    }

    /** A second producer of the same id ends the first one's transaction. */
    private void fence(Admin admin) throws Exception {
        String id = "third-" + input;
        try (KafkaProducer<String, String> older = producer(id);
                KafkaProducer<String, String> newer = producer(id)) {
            older.initTransactions();
            older.beginTransaction();
            send(older, output, "fenced");
            older.flush();
            check(admin.describeTransactions(List.of(id)).description(id).get().state()
                    == TransactionState.ONGOING, "the transaction is not ongoing");
            newer.initTransactions();
            check(isFenced(older), "the older producer commits");
            newer.beginTransaction();
            send(newer, output, "newer");
            newer.commitTransaction();
            waitUntilCommitted(admin, id);
        }
        List<String> values = read(output, "read_committed");
        check(values.stream().noneMatch(value -> value.startsWith("fenced")), "fenced records");
        check(values.size() == 2 * RECORDS, values.size() + " records in the end");
    }

    /** A commit is answered before its markers are written. */
    private static void waitUntilCommitted(Admin admin, String id) throws Exception {
        long started = System.nanoTime();
        while (admin.describeTransactions(List.of(id)).description(id).get().state()
                != TransactionState.COMPLETE_COMMIT) {
            check(System.nanoTime() - started < WAIT_NANOS_MAX, "the transaction is not complete");
            Thread.sleep(10);
        }
    }

    private static boolean isFenced(KafkaProducer<String, String> producer) {
        try {
            producer.commitTransaction();
            return false;
        } catch (ProducerFencedException | InvalidProducerEpochException expected) {
            return true;
        } catch (KafkaException error) {
            return error.getCause() instanceof ProducerFencedException
                    || error.getCause() instanceof InvalidProducerEpochException;
        }
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        return new KafkaProducer<>(Map.of(
                "bootstrap.servers", bootstrap,
                "transactional.id", transactionalId,
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class));
    }

    private KafkaConsumer<String, String> consumer(String group, String isolation) {
        return new KafkaConsumer<>(Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", group,
                "group.protocol", protocol,
                "auto.offset.reset", "earliest",
                "enable.auto.commit", "false",
                "isolation.level", isolation,
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class));
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String word) {
        for (int i = 0; i < RECORDS; i++) {
            producer.send(new ProducerRecord<>(topic, i % PARTITIONS, "key", word + "-" + i));
        }
    }

    private static List<ConsumerRecord<String, String>> take(
            KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> taken = new ArrayList<>();
        long started = System.nanoTime();
        while (taken.size() < count) {
            check(System.nanoTime() - started < WAIT_NANOS_MAX, "records do not come");
            consumer.poll(POLL).forEach(taken::add);
        }
        check(taken.size() == count, taken.size() + " records come");
        return taken;
    }

    /** All values of a topic up to what its readers may see now. */
    private List<String> read(String topic, String isolation) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("unused", isolation)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int partition = 0; partition < PARTITIONS; partition++) {
                partitions.add(new TopicPartition(topic, partition));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long started = System.nanoTime();
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                check(System.nanoTime() - started < WAIT_NANOS_MAX, "the end does not come");
                consumer.poll(POLL).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}

package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.InvalidRecordStateException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Workers of a share group (KIP-932): what a test can see of their records, and do to them. */
@Timeout(120)
final class SharedWorkTest {
    private static Odradek kafka;

    @BeforeAll
    static void start() throws Exception {
        kafka = new Odradek(
                "-o", "group.share.min.heartbeat.interval.ms=500",
                "-o", "group.share.heartbeat.interval.ms=500");
    }

    @AfterAll
    static void stop() throws Exception {
        kafka.close();
    }

    @Test
    void aReleasedRecordIsGivenOutAgain() throws Exception {
        kafka.post("/topics", Map.of("topic", "parcels"));
        try (KafkaShareConsumer<String, String> worker = worker("packers", "parcels")) {
            send("parcels", "a lamp");
            worker.acknowledge(next(worker), AcknowledgeType.RELEASE);
            worker.commitSync();

            ConsumerRecord<String, String> again = next(worker);
            assertEquals("a lamp", again.value());
            assertEquals(Optional.of((short) 2), again.deliveryCount());
            worker.acknowledge(again, AcknowledgeType.ACCEPT);
            worker.commitSync();
        }
        kafka.await("share_group_settled", Map.of("group", "packers"));
    }

    @Test
    void aWorkerThatIsTooSlowLosesItsRecord() throws Exception {
        kafka.post("/topics", Map.of("topic", "letters"));
        try (KafkaShareConsumer<String, String> worker = worker("clerks", "letters")) {
            send("letters", "a bill");
            ConsumerRecord<String, String> record = next(worker);
            kafka.await("records_in_flight", Map.of("group", "clerks", "at_least", 1));
            // Half a minute has passed, and the worker still has it (share.record.lock.duration.ms).
            JsonNode expired = kafka.post("/groups/clerks/expire-lock", Map.of("topic", "letters"));
            assertEquals(1, expired.get("records").asInt());

            worker.acknowledge(record, AcknowledgeType.ACCEPT);
            Map<TopicIdPartition, Optional<KafkaException>> outcome = worker.commitSync();
            assertTrue(outcome.values().stream()
                    .allMatch(each -> each.orElseThrow() instanceof InvalidRecordStateException));

            assertEquals("a bill", next(worker).value());
            kafka.await(
                    "delivery_count_reached",
                    Map.of("group", "clerks", "topic", "letters", "offset", 0, "count", 2));
        }
    }

    /** A worker whose group has begun: it does so at the end of the topic. */
    private static KafkaShareConsumer<String, String> worker(String group, String topic)
            throws Exception {
        Map<String, Object> settings =
                Map.of(
                        "bootstrap.servers", kafka.bootstrapServers(),
                        "group.id", group,
                        "share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<String, String> worker =
                new KafkaShareConsumer<>(
                        settings, new StringDeserializer(), new StringDeserializer());
        worker.subscribe(List.of(topic));
        while (!hasBegun(group)) {
            worker.poll(Duration.ofMillis(100));
        }
        return worker;
    }

    private static boolean hasBegun(String group) throws Exception {
        for (JsonNode each : kafka.get("/groups/" + group + "/share-partitions").get("share_partitions")) {
            if (each.get("is_loaded").asBoolean()) {
                return true;
            }
        }
        return false;
    }

    private static ConsumerRecord<String, String> next(KafkaShareConsumer<String, String> worker) {
        ConsumerRecords<String, String> records;
        do {
            records = worker.poll(Duration.ofSeconds(1));
        } while (records.isEmpty());
        return records.iterator().next();
    }

    private static void send(String topic, String value) throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(
                        Map.of("bootstrap.servers", kafka.bootstrapServers()),
                        new StringSerializer(),
                        new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, value)).get();
        }
    }
}

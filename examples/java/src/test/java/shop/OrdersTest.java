package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What tests of a program that uses Kafka can do, besides producing and consuming. */
@Timeout(120)
final class OrdersTest {
    private static Odradek kafka;

    @BeforeAll
    static void start() throws Exception {
        kafka = new Odradek();
    }

    @AfterAll
    static void stop() throws Exception {
        kafka.close();
    }

    @Test
    void anOrderIsShipped() throws Exception {
        kafka.post("/topics", Map.of("topic", "orders", "partitions", 2));
        try (KafkaProducer<String, String> producer = producer();
                KafkaConsumer<String, String> shipper = consumer("shippers")) {
            producer.send(new ProducerRecord<>("orders", "17", "a lamp")).get();
            shipper.subscribe(List.of("orders"));
            assertEquals(List.of("a lamp"), values(shipper, 1));
            shipper.commitSync();
        }
        kafka.await("no_lag", Map.of("group", "shippers"));
    }

    @Test
    void anOrderWhoseAnswerIsLostIsThereOnce() throws Exception {
        kafka.post("/topics", Map.of("topic", "lost"));
        Map<String, ?> loseAnswer =
                Map.of("fault", "lose_answer", "api", "Produce", "topic", "lost", "times", 1);
        int fault = kafka.post("/faults", loseAnswer).get("id").asInt();
        try (KafkaProducer<String, String> producer = producer()) {
            producer.send(new ProducerRecord<>("lost", "18", "a chair")).get();
        }
        assertEquals(1, kafka.post("/faults/" + fault + "/wait", Map.of()).get("strikes").asInt());
        assertEquals(1, kafka.get("/topics/lost/records").get("records").size());
        assertEquals(2, kafka.get("/requests?api=Produce&topic=lost").get("count").asInt());
    }

    @Test
    void ordersAreForgottenAfterAnHour() throws Exception {
        kafka.post(
                "/topics", Map.of("topic", "brief", "config", Map.of("retention.ms", "3600000")));
        try (KafkaProducer<String, String> producer = producer()) {
            producer.send(new ProducerRecord<>("brief", "19", "a book")).get();
        }
        kafka.await("records_in", Map.of("topic", "brief", "at_least", 1));
        kafka.post("/time/advance", Map.of("hours", 2));
        assertTrue(kafka.get("/topics/brief/records").get("records").isEmpty());
    }

    private static KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", kafka.bootstrapServers()),
                new StringSerializer(),
                new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Map<String, Object> settings =
                Map.of(
                        "bootstrap.servers", kafka.bootstrapServers(),
                        "group.id", group,
                        "auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static List<String> values(KafkaConsumer<String, String> consumer, int count) {
        List<String> found = new ArrayList<>();
        while (found.size() < count) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofSeconds(1))) {
                found.add(each.value());
            }
        }
        return found;
    }
}

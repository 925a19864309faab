package odradek.interop;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SaslAuthenticationException;

/**
 * How Kafka's own client logs in to a broker, by each mechanism of SASL, with the right password and
 * with a wrong one. It prints a line for each: the client, the mechanism, the password, what came of
 * it.
 *
 * <p>Arguments: the bootstrap server, the authority's certificate ("" without TLS), a topic that is
 * there, the user, the password.
 */
public final class Logins {
    private static final Map<String, String> MODULES = Map.of(
            "PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule",
            "SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule",
            "SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule");

    private Logins() {}

    public static void main(String[] arguments) throws InterruptedException {
        for (String mechanism : MODULES.keySet()) {
            for (String name : List.of("right", "wrong")) {
                String password = arguments[4] + (name.equals("right") ? "" : "x");
                String outcome = produceAndConsume(arguments, mechanism, password);
                System.out.printf("java %s %s: %s%n", mechanism, name, outcome);
            }
        }
    }

    private static String produceAndConsume(String[] arguments, String mechanism, String password)
            throws InterruptedException {
        Properties settings = settings(arguments, mechanism, password);
        String topic = arguments[2];
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>(topic, "java")).get();
        } catch (ExecutionException error) {
            return outcome(error.getCause());
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            boolean empty = consumer.poll(Duration.ofSeconds(60)).isEmpty();
            return empty ? "nothing was consumed" : "produced and consumed";
        }
    }

    private static String outcome(Throwable error) {
        return error instanceof SaslAuthenticationException ? "authentication failed" : error.toString();
    }

    private static Properties settings(String[] arguments, String mechanism, String password) {
        boolean secure = !arguments[1].isEmpty();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("security.protocol", secure ? "SASL_SSL" : "SASL_PLAINTEXT");
        if (secure) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", arguments[1]);
        }
        settings.put("sasl.mechanism", mechanism);
        settings.put("sasl.jaas.config", "%s required username=\"%s\" password=\"%s\";"
                .formatted(MODULES.get(mechanism), arguments[3], password));
        String text = "org.apache.kafka.common.serialization.String";
        settings.put("key.serializer", text + "Serializer");
        settings.put("value.serializer", text + "Serializer");
        settings.put("key.deserializer", text + "Deserializer");
        settings.put("value.deserializer", text + "Deserializer");
        return settings;
    }
}

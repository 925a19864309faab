package odradek.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SaslAuthenticationException;

/**
 * How Kafka's own client logs in by the settings of a file. It prints what came of it.
 *
 * <p>Arguments: the file, a topic.
 */
public final class FileLogin {
    private FileLogin() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Properties settings = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(reader);
        }
        String text = "org.apache.kafka.common.serialization.String";
        settings.put("key.serializer", text + "Serializer");
        settings.put("value.serializer", text + "Serializer");
        settings.put("key.deserializer", text + "Deserializer");
        settings.put("value.deserializer", text + "Deserializer");
        System.out.println(produceAndConsume(settings, arguments[1]));
    }

    private static String produceAndConsume(Properties settings, String topic)
            throws InterruptedException {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>(topic, "java")).get();
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            return cause instanceof SaslAuthenticationException
                    ? "authentication failed"
                    : cause.toString();
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            boolean empty = consumer.poll(Duration.ofSeconds(60)).isEmpty();
            return empty ? "nothing was consumed" : "produced and consumed";
        }
    }
}

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
import org.apache.kafka.common.errors.AuthenticationException;

/**
 * How Kafka's own client logs in to a broker by the settings of files. It prints a line for each: the
 * client, the file's name, what came of it.
 *
 * <p>Arguments: a topic, the files.
 */
public final class Logins {
    private Logins() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        for (String file : List.of(arguments).subList(1, arguments.length)) {
            Path path = Path.of(file);
            String outcome = produceAndConsume(settings(path), arguments[0]);
            System.out.printf("java %s: %s%n", path.getFileName(), outcome);
        }
    }

    private static Properties settings(Path path) throws IOException {
        Properties settings = new Properties();
        try (var reader = Files.newBufferedReader(path)) {
            settings.load(reader);
        }
        String text = "org.apache.kafka.common.serialization.String";
        settings.put("key.serializer", text + "Serializer");
        settings.put("value.serializer", text + "Serializer");
        settings.put("key.deserializer", text + "Deserializer");
        settings.put("value.deserializer", text + "Deserializer");
        return settings;
    }

    private static String produceAndConsume(Properties settings, String topic)
            throws InterruptedException {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>(topic, "java")).get();
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            return cause instanceof AuthenticationException
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

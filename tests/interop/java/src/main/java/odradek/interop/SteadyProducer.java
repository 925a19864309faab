package odradek.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * An idempotent producer that sends what standard input says, and prints what becomes of it.
 *
 * <p>Arguments: the bootstrap servers, the topic, and settings as key=value. Input: {@code ID
 * PARTITION VALUE}, a line for each record; at its end all that was sent is waited for.
 *
 * <p>Output: {@code ready}, then {@code acknowledged ID OFFSET} or {@code refused ID REASON}.
 */
public final class SteadyProducer {
    private SteadyProducer() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            tell("ready");
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                send(producer, arguments[1], line.split(" ", 3));
            }
            producer.flush();
        }
    }

    private static void send(
            KafkaProducer<byte[], byte[]> producer, String topic, String[] words) {
        byte[] value = words[2].getBytes(StandardCharsets.UTF_8);
        int partition = Integer.parseInt(words[1]);
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, partition, null, value);
        producer.send(record, (metadata, error) -> {
            if (error == null) {
                tell("acknowledged " + words[0] + " " + metadata.offset());
            } else {
                tell("refused " + words[0] + " " + error);
            }
        });
    }

    private static void tell(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}

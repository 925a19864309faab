package odradek.interop;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * One instance of a word count, with exactly-once processing in a streams group (KIP-1071).
 *
 * Arguments: bootstrap servers, application id, the folder for states, name of the instance. It
 * prints each state that it comes to, and ends when its input does. It reads "lines", and writes
 * the count of each word so far to "counts".
 */
public final class StreamsInstance {
    private static final int THREADS = 2;

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(args[2], args[3]).toString());
        properties.put(StreamsConfig.CLIENT_ID_CONFIG, args[3]);
        properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG),
            "earliest");
        // A transaction that was left open by a killed instance keeps others from going on.
        properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("words"))
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.start();
        while (System.in.read() >= 0) {
            // It runs until its input ends.
        }
        streams.close(Duration.ofSeconds(30));
        say("closed");
    }

    private static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }
}

package odradek.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of one group that come and go as standard input says, a thread each. They commit what
 * they have read, and print whatever happens to them, a line each: System.nanoTime(), the
 * member's name, what happened, and details.
 *
 * <p>Arguments: the bootstrap server, the topic, the group, and settings as key=value. Input:
 * {@code join NAME [INSTANCE]} and {@code leave NAME}; at its end all leave.
 *
 * <p>Output: {@code assigned GENERATION PARTITIONS}, {@code revoked PARTITIONS}, {@code lost
 * PARTITIONS}, {@code read PARTITION OFFSET}, {@code committing PARTITION OFFSET METADATA},
 * {@code committed} likewise, {@code leaving}, {@code closed}, {@code failed REASON}.
 */
public final class GroupMembers {
    private static final Duration POLL = Duration.ofMillis(100);

    private final String topic;
    private final Map<String, Object> settings = new HashMap<>();
    private final Map<String, Member> members = new ConcurrentHashMap<>();

    private GroupMembers(String[] arguments) {
        topic = arguments[1];
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        GroupMembers all = new GroupMembers(arguments);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("join")) {
                all.join(words[1], words.length > 2 ? words[2] : null);
            } else {
                all.members.get(words[1]).leave();
            }
        }
        all.members.values().forEach(Member::leave);
        for (Member member : all.members.values()) {
            member.join();
        }
    }

    private void join(String name, String instance) {
        Map<String, Object> own = new HashMap<>(settings);
        own.put("client.id", name);
        if (instance != null) {
            own.put("group.instance.id", instance);
        }
        Member member = new Member(name, own);
        members.put(name, member);
        member.start();
    }

    private static void tell(String member, String what) {
        synchronized (System.out) {
            System.out.println(System.nanoTime() + " " + member + " " + what);
            System.out.flush();
        }
    }

    private static String numbers(Collection<TopicPartition> partitions) {
        return partitions.stream()
                .map(partition -> Integer.toString(partition.partition()))
                .collect(Collectors.joining(","));
    }

    private final class Member extends Thread implements ConsumerRebalanceListener {
        private final Map<String, Object> own;
        private final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        private volatile boolean leaving;
        private KafkaConsumer<String, String> consumer;

        Member(String name, Map<String, Object> own) {
            super(name);
            this.own = own;
        }

        void leave() {
            leaving = true;
        }

        @Override
        public void run() {
            try (KafkaConsumer<String, String> made = new KafkaConsumer<>(own)) {
                consumer = made;
                consumer.subscribe(List.of(topic), this);
                while (!leaving) {
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    records.forEach(this::note);
                    if (records.isEmpty()) {
                        commit();
                    }
                }
                commit();
                tell(getName(), "leaving");
            } catch (Throwable error) {
                tell(getName(), "failed " + error);
            }
            tell(getName(), "closed");
        }

        private void note(ConsumerRecord<String, String> record) {
            tell(getName(), "read " + record.partition() + " " + record.offset());
            long next = record.offset() + 1;
            positions.put(
                    new TopicPartition(topic, record.partition()),
                    new OffsetAndMetadata(next, getName() + " read up to " + next));
        }

        private void commit() {
            if (positions.isEmpty()) {
                return;
            }
            Map<TopicPartition, OffsetAndMetadata> wanted = Map.copyOf(positions);
            positions.clear();
            tellAll("committing ", wanted);
            try {
                consumer.commitSync(wanted);
            } catch (CommitFailedException
                    | RebalanceInProgressException
                    | RetriableCommitFailedException late) {
                return; // a rebalance came between
            }
            tellAll("committed ", wanted);
        }

        private void tellAll(String what, Map<TopicPartition, OffsetAndMetadata> commits) {
            commits.forEach((partition, commit) -> tell(getName(), what + partition.partition()
                    + " " + commit.offset() + " " + commit.metadata()));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            int generation = consumer.groupMetadata().generationId();
            tell(getName(), "assigned " + generation + " " + numbers(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            tell(getName(), "revoked " + numbers(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            partitions.forEach(positions::remove);
            tell(getName(), "lost " + numbers(partitions));
        }
    }
}

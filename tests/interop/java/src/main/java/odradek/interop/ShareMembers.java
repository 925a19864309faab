package odradek.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of one share group that come and go as standard input says, a thread each, and say what
 * they read.
 *
 * <p>Arguments: the bootstrap server, the topic, the group, and settings as key=value. Input:
 * {@code join NAME} and {@code leave NAME}; at its end all leave.
 *
 * <p>A record whose value begins with {@code release}, {@code reject} or {@code renew} is
 * acknowledged so (one that was renewed is accepted in the next round); at the first delivery of
 * {@code hold} the member does nothing more; all others are accepted.
 *
 * <p>Output, after the member's name: {@code read PARTITION OFFSET DELIVERIES VALUE},
 * {@code acknowledged PARTITION OFFSET...}, {@code refused ERROR PARTITION OFFSET...},
 * {@code closed}, {@code failed REASON}.
 */
public final class ShareMembers {
    private static final Duration POLL = Duration.ofMillis(100);

    private final String topic;
    private final Map<String, Object> settings = new HashMap<>();
    private final Map<String, Member> members = new ConcurrentHashMap<>();

    private ShareMembers(String[] arguments) {
        topic = arguments[1];
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        ShareMembers all = new ShareMembers(arguments);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("join")) {
                Member member = all.new Member(words[1]);
                all.members.put(words[1], member);
                member.start();
            } else {
                all.members.get(words[1]).leaving = true;
            }
        }
        all.members.values().forEach(member -> member.leaving = true);
        for (Member member : all.members.values()) {
            member.join();
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private final class Member extends Thread {
        private final String name;
        private volatile boolean leaving;

        Member(String name) {
            this.name = name;
        }

        @Override
        public void run() {
            try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
                consumer.setAcknowledgementCommitCallback((offsets, error) ->
                    offsets.forEach((partition, acknowledged) -> {
                        StringBuilder line = new StringBuilder(name);
                        line.append(error == null ? " acknowledged "
                            : " refused " + error.getClass().getSimpleName() + " ");
                        line.append(partition.partition());
                        acknowledged.forEach(offset -> line.append(' ').append(offset));
                        say(line.toString());
                    }));
                consumer.subscribe(List.of(topic));
                say(name + " subscribed");
                while (!leaving) {
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    boolean renewed = false;
                    for (ConsumerRecord<String, String> record : records) {
                        say(name + " read " + record.partition() + " " + record.offset() + " "
                            + record.deliveryCount().orElse((short) -1) + " " + record.value());
                        if (record.value().startsWith("hold")
                                && record.deliveryCount().orElse((short) 0) == 1) {
                            Thread.sleep(Long.MAX_VALUE);
                        }
                        renewed |= record.value().startsWith("renew");
                        consumer.acknowledge(record, typeFor(record.value()));
                    }
                    if (!records.isEmpty()) {
                        consumer.commitSync();
                    }
                    if (renewed) {
                        for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                            say(name + " again " + record.partition() + " " + record.offset()
                                + " " + record.deliveryCount().orElse((short) -1) + " "
                                + record.value());
                            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        }
                        consumer.commitSync();
                    }
                }
            } catch (Exception error) {
                say(name + " failed " + error);
                error.printStackTrace();
            }
            say(name + " closed");
        }

        private AcknowledgeType typeFor(String value) {
            if (value.startsWith("release")) {
                return AcknowledgeType.RELEASE;
            }
            if (value.startsWith("reject")) {
                return AcknowledgeType.REJECT;
            }
            return value.startsWith("renew") ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT;
        }
    }
}

package odradek.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Kafka's own assignors and hashes of topics, asked line by line.
 *
 * <p>{@code uniform|1:3,2:5|a;;1,2;1:0 2/2:4|b;instance;1;} asks for an assignment: topics with
 * their partition counts, then members, each with its instance id, topics and partitions. The
 * answer is {@code a=1:0 2/2:4|b=...}. Topic n has the id of n, so that Kafka's hash tables keep
 * topics in order. {@code hash|name|id in hex|rack,rack/rack} asks for the hash of a topic, and
 * {@code hashes|name=7|other=9} for that of a group's topics.
 */
public final class GroupAssignments {
    private GroupAssignments() {}

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\\|", -1);
            switch (parts[0]) {
                case "hash" -> System.out.println(topicHash(parts));
                case "hashes" -> System.out.println(groupHash(parts));
                default -> System.out.println(assignment(parts));
            }
        }
    }

    private static String assignment(String[] parts) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : split(parts[1], ",")) {
            String[] pair = topic.split(":");
            counts.put(id(pair[0]), Integer.valueOf(pair[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int number = 2; number < parts.length; number++) {
            String[] member = parts[number].split(";", -1);
            Set<Uuid> topics = new LinkedHashSet<>();
            split(member[2], ",").forEach(topic -> topics.add(id(topic)));
            Map<Uuid, Set<Integer>> has = new LinkedHashMap<>();
            for (String topic : split(member[3], "/")) {
                String[] pair = topic.split(":");
                Set<Integer> partitions = new TreeSet<>();
                split(pair[1], " ").forEach(text -> partitions.add(Integer.valueOf(text)));
                has.put(id(pair[0]), partitions);
                for (int partition : partitions) {
                    owners.computeIfAbsent(id(pair[0]), any -> new HashMap<>())
                        .put(partition, member[0]);
                }
            }
            Optional<String> instance =
                member[1].isEmpty() ? Optional.empty() : Optional.of(member[1]);
            members.put(
                member[0],
                new MemberSubscriptionAndAssignmentImpl(
                    Optional.empty(),
                    instance,
                    topics,
                    new Assignment(Collections.unmodifiableMap(has))));
        }
        boolean alike =
            members.values().stream().map(m -> Set.copyOf(m.subscribedTopicIds())).distinct().count()
                <= 1;
        var group = new GroupSpecImpl(
            members,
            alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
            owners);
        ConsumerGroupPartitionAssignor assignor =
            parts[0].equals("range") ? new RangeAssignor() : new UniformAssignor();
        return text(assignor.assign(group, new Topics(counts)));
    }

    private static String text(GroupAssignment assignment) {
        Map<String, String> texts = new TreeMap<>();
        for (Map.Entry<String, MemberAssignment> member : assignment.members().entrySet()) {
            Map<Long, String> topics = new TreeMap<>();
            member.getValue().partitions().forEach((id, partitions) -> {
                if (!partitions.isEmpty()) {
                    topics.put(
                        id.getLeastSignificantBits(),
                        id.getLeastSignificantBits() + ":"
                            + new TreeSet<>(partitions).stream().map(String::valueOf)
                                .collect(Collectors.joining(" ")));
                }
            });
            texts.put(member.getKey(), member.getKey() + "=" + String.join("/", topics.values()));
        }
        return String.join("|", texts.values());
    }

    private record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }

    private static long groupHash(String[] parts) {
        Map<String, Long> hashes = new HashMap<>();
        for (int number = 1; number < parts.length; number++) {
            String[] pair = parts[number].split("=");
            hashes.put(pair[0], Long.valueOf(pair[1]));
        }
        return Utils.computeGroupHash(hashes);
    }

    private static long topicHash(String[] parts) {
        var id = new Uuid(
            Long.parseUnsignedLong(parts[2].substring(0, 16), 16),
            Long.parseUnsignedLong(parts[2].substring(16), 16));
        List<List<String>> racks = new ArrayList<>();
        for (String partition : parts[3].split("/", -1)) {
            racks.add(split(partition, ","));
        }
        return Utils.computeTopicHash(parts[1], new OneTopic(parts[1], id, racks));
    }

    private record OneTopic(String name, Uuid id, List<List<String>> racks)
        implements CoordinatorMetadataImage, CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return racks.size();
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }

        @Override
        public Set<Uuid> topicIds() {
            return Set.of(id);
        }

        @Override
        public Set<String> topicNames() {
            return Set.of(name);
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String topic) {
            return topic.equals(name) ? Optional.of(this) : Optional.empty();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid topic) {
            return topic.equals(id) ? Optional.of(this) : Optional.empty();
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }

    private static Uuid id(String number) {
        return new Uuid(0, Long.parseLong(number));
    }

    private static List<String> split(String text, String by) {
        return text.isEmpty() ? List.of() : List.of(text.split(by));
    }
}

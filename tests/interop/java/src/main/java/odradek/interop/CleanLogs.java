package odradek.interop;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * One round of Kafka's cleaner on each of many partition folders.
 *
 * <p>Standard input has a line for each: folder, first dirty offset, first uncleanable offset,
 * how many keys the offset map takes, the time in ms, segment.bytes, delete.retention.ms,
 * index.interval.bytes. Standard output has the offset up to which each is clean then.
 */
public final class CleanLogs {
    private static final int SLOTS = 1 << 16;
    private static final int BUFFER_BYTES = 1 << 16;

    private CleanLogs() {
    }

    public static void main(String[] arguments) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1, true, "late-deletions");
        scheduler.startup();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(clean(line.split(" "), scheduler));
        }
        System.out.flush();
        System.exit(0);
    }

    private static long clean(String[] job, KafkaScheduler scheduler) throws Exception {
        Time time = new StoppedTime(Long.parseLong(job[4]));
        LogConfig config = new LogConfig(Map.of(
            "cleanup.policy", "compact",
            "internal.segment.bytes", Integer.parseInt(job[5]),
            "delete.retention.ms", job[6],
            "index.interval.bytes", job[7]));
        UnifiedLog log = UnifiedLog.create(
            new File(job[0]), config, 0, Long.MAX_VALUE / 2, scheduler, new BrokerTopicStats(),
            time, 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        double loadFactor = (Integer.parseInt(job[3]) + 0.5) / SLOTS;
        Throttler throttler =
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner", "bytes", time);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(SLOTS * 24), BUFFER_BYTES, BUFFER_BYTES, loadFactor, throttler,
            time, topicPartition -> { });
        LogToClean dirty =
            new LogToClean(log, Long.parseLong(job[1]), Long.parseLong(job[2]), false);
        long end = cleaner.doClean(dirty, time.milliseconds()).getKey();
        log.close();
        return end;
    }

    /** A clock that stands still, so that two cleaners see the same moment. */
    private record StoppedTime(long milliseconds) implements Time {
        @Override
        public long hiResClockMs() {
            return milliseconds;
        }

        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        }
    }
}

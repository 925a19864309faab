// What a Node program does with a broker, through KafkaJS: topics, records in the
// compressions that need no native code, a group that grows and shrinks, offsets by
// timestamp, administration. It ends with exit code 1 and a stack trace at the first thing
// that is not as it should be.
//
// Arguments: the bootstrap server and the name of a topic that does not exist.
'use strict';

const assert = require('node:assert/strict');
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs');
const SnappyCodec = require('kafkajs-snappy');

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;

const PARTITIONS = 4;
const RECORDS_PER_COMPRESSION = 1000;
const COMPRESSIONS = ['None', 'GZIP', 'Snappy'];
const WAIT_MS_MAX = 120_000;
const TIMEOUT_MS = 60_000;

const [bootstrap, topic] = process.argv.slice(2);
const firstTimestampMs = Date.now() - 3_600_000;
const kafka = new Kafka({
  clientId: 'roundtrip',
  brokers: [bootstrap],
  connectionTimeout: TIMEOUT_MS, // a second by itself, which a busy machine may need
  requestTimeout: TIMEOUT_MS,
  logLevel: logLevel.ERROR,
});

// Resolves when `condition` holds; `changed` is to be called whenever it may have come true.
function waitUntil(condition, what) {
  let changed;
  const promise = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`waited for ${what}`)), WAIT_MS_MAX);
    changed = () => {
      if (condition()) {
        clearTimeout(timer);
        resolve();
      }
    };
  });
  return { promise, changed };
}

async function createTopic(admin) {
  await admin.createTopics({
    timeout: TIMEOUT_MS,
    topics: [{ topic, numPartitions: 2, configEntries: [{ name: 'retention.ms', value: '-1' }] }],
  });
  await admin.createPartitions({
    timeout: TIMEOUT_MS,
    topicPartitions: [{ topic, count: PARTITIONS }],
  });
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 2, name: topic }],
  });
  const retention = resources[0].configEntries.find((e) => e.configName === 'retention.ms');
  assert.equal(retention.configValue, '-1');
  assert.ok((await admin.listTopics()).includes(topic));
}

async function produceInEveryCompression() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  let sent = 0;
  for (const compression of COMPRESSIONS) {
    const messages = [];
    for (let i = 0; i < RECORDS_PER_COMPRESSION; i++, sent++) {
      messages.push({
        partition: sent % PARTITIONS,
        key: `key-${sent}`,
        value: `${sent}`,
        headers: { number: `${sent}` },
        timestamp: `${firstTimestampMs + sent}`,
      });
    }
    await producer.send({
      topic,
      messages,
      acks: -1,
      compression: CompressionTypes[compression],
    });
  }
  await producer.disconnect();
  return sent;
}

async function consumeByAGroupThatGrowsAndShrinks(admin, expected) {
  const groupId = `group-${topic}`;
  const read = new Map();
  const owned = [0, 0];
  let waiting = { changed: () => {} };

  const join = async (index) => {
    const consumer = kafka.consumer({
      groupId,
      heartbeatInterval: 200,
      sessionTimeout: TIMEOUT_MS,
      maxWaitTimeInMs: 200, // KafkaJS sends its heartbeats between fetches
    });
    await consumer.connect();
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      owned[index] = (payload.memberAssignment[topic] || []).length;
      waiting.changed();
    });
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        const number = Number(message.value.toString());
        assert.equal(message.key.toString(), `key-${number}`);
        assert.equal(message.headers.number.toString(), `${number}`);
        assert.equal(message.timestamp, `${firstTimestampMs + number}`);
        if (!read.has(partition)) {
          read.set(partition, []);
        }
        read.get(partition).push({ offset: message.offset, number });
        waiting.changed();
      },
    });
    return consumer;
  };
  const settle = async (first, second) => {
    waiting = waitUntil(() => owned[0] === first && owned[1] === second, `${first}, ${second}`);
    waiting.changed();
    await waiting.promise;
  };
  // KafkaJS is at-least-once over a rebalance: what counts is each offset's first reading.
  const firstReadings = () =>
    [...read.entries()].map(([partition, records]) => {
      const numbers = new Map(records.map(({ offset, number }) => [offset, number]));
      return [partition, [...numbers.values()]];
    });
  const distinct = () => firstReadings().reduce((sum, [, numbers]) => sum + numbers.length, 0);

  const first = await join(0);
  await settle(PARTITIONS, 0);
  const second = await join(1);
  await settle(PARTITIONS / 2, PARTITIONS / 2);
  const { groups } = await admin.describeGroups([groupId]);
  assert.equal(groups[0].state, 'Stable');
  await second.disconnect();
  owned[1] = 0;
  await settle(PARTITIONS, 0);
  waiting = waitUntil(() => distinct() === expected, `${expected} records`);
  waiting.changed();
  await waiting.promise;
  // Of what is read once more after a rebalance, and not committed yet, it would leave the rest.
  const committedOffsets = async () => {
    const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
    return committed.partitions.map(({ offset }) => Number(offset));
  };
  const end = expected / PARTITIONS;
  const began = Date.now();
  while (!(await committedOffsets()).every((offset) => offset === end)) {
    assert.ok(Date.now() - began < WAIT_MS_MAX, `committed are ${await committedOffsets()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await first.disconnect();

  for (const [partition, numbers] of firstReadings()) {
    assert.deepEqual(
      numbers,
      Array.from({ length: end }, (_, i) => i * PARTITIONS + partition),
    );
  }
  assert.deepEqual(await committedOffsets(), Array(PARTITIONS).fill(end));
  assert.ok((await admin.listGroups()).groups.some((group) => group.groupId === groupId));
  await admin.deleteGroups([groupId]);
}

async function findOffsets(admin, sent) {
  const timestamp = firstTimestampMs + 10 * PARTITIONS + 1;
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp);
  assert.equal(found.find(({ partition }) => partition === 1).offset, '10');
  const ends = await admin.fetchTopicOffsets(topic);
  assert.equal(ends.find(({ partition }) => partition === 1).high, `${sent / PARTITIONS}`);
}

async function deleteRecords(admin) {
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 3, offset: '7' }] });
  const offsets = await admin.fetchTopicOffsets(topic);
  assert.equal(offsets.find(({ partition }) => partition === 3).low, '7');
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await createTopic(admin);
  const sent = await produceInEveryCompression();
  await consumeByAGroupThatGrowsAndShrinks(admin, sent);
  await findOffsets(admin, sent);
  await deleteRecords(admin);
  await admin.deleteTopics({ topics: [topic], timeout: TIMEOUT_MS });
  await admin.disconnect();
  console.log(`produced and consumed ${sent} records`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

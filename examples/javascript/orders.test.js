'use strict';

// What tests of a program that uses Kafka can do, besides producing and consuming.

const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const { Kafka, logLevel } = require('kafkajs');
const { Odradek } = require('./odradek.js');

let odradek;
let kafka;

before(async () => {
  odradek = await Odradek.start();
  kafka = new Kafka({ brokers: odradek.bootstrapServers, logLevel: logLevel.NOTHING });
});

after(() => odradek.stop());

async function produce(topic, value) {
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  await producer.send({ topic, messages: [{ value }] });
  await producer.disconnect();
}

test('an order is shipped', async () => {
  await odradek.post('/topics', { topic: 'orders', partitions: 2 });
  await produce('orders', 'a lamp');

  const shipper = kafka.consumer({ groupId: 'shippers' });
  await shipper.connect();
  await shipper.subscribe({ topics: ['orders'], fromBeginning: true });
  const shipped = await new Promise((resolve) => {
    shipper.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) });
  });
  assert.equal(shipped, 'a lamp');
  await shipper.disconnect();
  await odradek.wait('no_lag', { group: 'shippers' });
});

test('an order whose answer is lost is there once', async () => {
  await odradek.post('/topics', { topic: 'lost' });
  const loseAnswer = { fault: 'lose_answer', api: 'Produce', topic: 'lost', times: 1 };
  const fault = await odradek.post('/faults', loseAnswer);
  await produce('lost', 'a chair');

  const struck = await odradek.post(`/faults/${fault.id}/wait`);
  assert.equal(struck.strikes, 1);
  const { records } = await odradek.get('/topics/lost/records');
  assert.deepEqual(records.map((record) => record.value), ['a chair']);
  assert.equal((await odradek.get('/requests?api=Produce&topic=lost')).count, 2);
});

test('orders are forgotten after an hour', async () => {
  await odradek.post('/topics', { topic: 'brief', config: { 'retention.ms': '3600000' } });
  await produce('brief', 'a book');
  await odradek.wait('records_in', { topic: 'brief', at_least: 1 });
  await odradek.post('/time/advance', { hours: 2 });
  assert.deepEqual((await odradek.get('/topics/brief/records')).records, []);
});

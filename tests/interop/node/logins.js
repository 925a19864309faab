// How KafkaJS logs in to a broker, by each mechanism of SASL, with the right password and with a
// wrong one. It prints a line for each: the client, the mechanism, the password, what came of it.
//
// Arguments: the bootstrap server, the authority's certificate ("" without TLS), a topic that is
// there, the user, the password.
'use strict';

const fs = require('node:fs');
const { Kafka, logLevel } = require('kafkajs');

const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'];
const TIMEOUT_MS = 60_000;

const [bootstrap, authority, topic, username, right] = process.argv.slice(2);

async function produceAndConsume(mechanism, password) {
  const kafka = new Kafka({
    clientId: 'logins',
    brokers: [bootstrap],
    connectionTimeout: TIMEOUT_MS,
    authenticationTimeout: TIMEOUT_MS,
    logLevel: logLevel.NOTHING,
    ssl: authority ? { ca: [fs.readFileSync(authority, 'utf-8')] } : undefined,
    sasl: { mechanism, username, password },
  });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: `kafkajs-${mechanism}-${process.pid}` });
  try {
    await producer.connect();
    await producer.send({ topic, messages: [{ value: 'kafkajs' }] });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await new Promise((resolve) => consumer.run({ eachMessage: async () => resolve() }));
    return 'produced and consumed';
  } catch (error) {
    return error.name === 'KafkaJSSASLAuthenticationError' ? 'authentication failed' : `${error}`;
  } finally {
    await consumer.disconnect();
    await producer.disconnect();
  }
}

async function main() {
  for (const mechanism of MECHANISMS) {
    for (const [name, password] of [['right', right], ['wrong', `${right}x`]]) {
      const outcome = await produceAndConsume(mechanism, password);
      console.log(`kafkajs ${mechanism.toUpperCase()} ${name}: ${outcome}`);
    }
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

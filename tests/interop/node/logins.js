// How KafkaJS logs in to a broker, in each way of a plan. It prints a line for each: the client, the
// name of the login, what came of it.
//
// Argument: a file with the plan, as tests/support/logins.py writes it.
'use strict';

const fs = require('node:fs');
const { Kafka, KafkaJSSASLAuthenticationError, logLevel } = require('kafkajs');

const TIMEOUT_MS = 60_000;

const { bootstrap, authority, topic, logins } = JSON.parse(fs.readFileSync(process.argv[2], 'utf-8'));

function sslOf(login) {
  if (!authority) return undefined;
  const read = (path) => (path ? fs.readFileSync(path, 'utf-8') : undefined);
  return { ca: [read(authority)], cert: read(login.certificate), key: read(login.key) };
}

function saslOf(login) {
  if (!login.mechanism) return undefined;
  if (login.mechanism === 'OAUTHBEARER') {
    return {
      mechanism: 'oauthbearer',
      oauthBearerProvider: async () => ({ value: login.access_token }),
    };
  }
  if (login.mechanism === 'GSSAPI') {
    return { mechanism: 'GSSAPI', authenticationProvider: kerberosProvider(login) };
  }
  const { mechanism, user: username, password } = login;
  return { mechanism: mechanism.toLowerCase(), username, password };
}

// KafkaJS leaves GSSAPI to whoever needs it: here it is MIT's, by the package kerberos, which takes
// tickets where KRB5CCNAME says, or gets some with the keys of KRB5_CLIENT_KTNAME.
function kerberosProvider(login) {
  const kerberos = require('kerberos');
  const noLayer = Buffer.from([1, 0, 0, 0]).toString('base64');
  return ({ host, saslAuthenticate }) => ({
    authenticate: async () => {
      const client = await kerberos.initializeClient(`${login.service}@${host}`, {
        mechOID: kerberos.GSS_MECH_OID_KRB5,
        principal: `${login.user}@${login.realm}`,
      });
      const exchange = async (token) => {
        const sent = Buffer.from(token || '', 'base64');
        const size = Buffer.alloc(4);
        size.writeInt32BE(sent.length);
        const answer = await saslAuthenticate({
          request: { encode: () => Buffer.concat([size, sent]) },
          response: { decode: (sized) => sized.subarray(4), parse: (data) => data },
        });
        return answer.toString('base64');
      };
      try {
        let answer = '';
        while (!client.contextComplete) answer = await exchange(await client.step(answer));
        await client.unwrap(answer); // the layers that the broker offers
        await exchange(await client.wrap(noLayer, {}));
      } catch (error) {
        throw new KafkaJSSASLAuthenticationError(error);
      }
    },
  });
}

async function produceAndConsume(login) {
  const kafka = new Kafka({
    clientId: 'logins',
    brokers: [bootstrap],
    connectionTimeout: TIMEOUT_MS,
    authenticationTimeout: TIMEOUT_MS,
    logLevel: logLevel.NOTHING,
    ssl: sslOf(login),
    sasl: saslOf(login),
  });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: `kafkajs-${login.name}-${process.pid}` });
  try {
    await producer.connect();
    await producer.send({ topic, messages: [{ value: 'kafkajs' }] });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await new Promise((resolve) => consumer.run({ eachMessage: async () => resolve() }));
    return 'produced and consumed';
  } catch (error) {
    const isRefused =
      error.name === 'KafkaJSSASLAuthenticationError' || /alert unknown ca/.test(error.message);
    return isRefused ? 'authentication failed' : `${error}`;
  } finally {
    await consumer.disconnect();
    await producer.disconnect();
  }
}

async function main() {
  for (const login of logins) {
    console.log(`kafkajs ${login.name}: ${await produceAndConsume(login)}`);
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

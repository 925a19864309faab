'use strict';

// A Kafka for tests: `odradek serve --ephemeral --json`, and its control channel. It ends with
// `stop()`, and with this process, however that one ends: its standard input is a pipe from here.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

class Odradek {
  // Starts it; `options` such as '--brokers', '3' are those of `odradek serve`.
  static async start(...options) {
    const child = spawn('odradek', ['serve', '--ephemeral', '--json', ...options], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout });
    const [line] = await Promise.race([
      once(lines, 'line'), // rejects, too, if the program cannot be found
      once(child, 'exit').then(([code]) => {
        throw new Error(`odradek ended with ${code}; what it printed says why`);
      }),
    ]);
    return new Odradek(child, JSON.parse(line));
  }

  constructor(child, ready) {
    this.child = child;
    this.control = ready.control;
    this.bootstrapServers = ready.bootstrap_servers.split(',');
  }

  // What a GET answers, such as `get('/topics/orders')`.
  get(path) {
    return this.#send(path, { method: 'GET' });
  }

  // What a POST answers, such as `post('/time/advance', { hours: 2 })`.
  post(path, body = {}) {
    return this.#send(path, { method: 'POST', body: JSON.stringify(body) });
  }

  // Waits for a condition, such as `wait('group_stable', { group: 'shippers' })`.
  wait(condition, body) {
    return this.post('/wait', { condition, ...body });
  }

  // Ends it: closing its standard input is enough.
  async stop() {
    const ended = once(this.child, 'exit');
    this.child.stdin.end();
    await ended;
  }

  async #send(path, request) {
    const response = await fetch(this.control + path, request);
    const answer = await response.json();
    if (!response.ok) {
      throw new Error(answer.error);
    }
    return answer;
  }
}

module.exports = { Odradek };

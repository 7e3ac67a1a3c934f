// memjs against a running server: `node main.js 127.0.0.1:11211 binary`. Prints `ok NAME` for each check and ends at the first wrong answer.
'use strict';

const assert = require('node:assert');
const { setTimeout: sleep } = require('node:timers/promises');
const memjs = require('memjs');

const NEVER = 100_000;
const [address, protocol] = process.argv.slice(2);
if (!address || protocol !== 'binary') {
  console.error('usage: main.js HOST:PORT binary');
  process.exit(2);
}

// What the server refuses is logged by memjs; the checks see it as an error, and standard output is theirs alone.
const quiet = { log: () => {} };
const connect = () => memjs.Client.create(address, { timeout: 20, retries: 1, logger: quiet });

async function holds(client, key, expected) {
  const { value } = await client.get(key);
  assert.strictEqual(value === null ? null : value.toString('latin1'), expected);
}

// memjs has no multi-get and no cas, and its prepend sends the opcode of append.
const checks = {
  'set and get': async (client) => {
    await holds(client, 'absent', null);
    for (const value of ['', 'value', '\0\r\n', 'END\r\n', 'x'.repeat(5000)]) {
      assert.strictEqual(await client.set('key', value), true);
      await holds(client, 'key', value);
    }
    const longest = 'k'.repeat(250);
    await client.set(longest, 'long');
    await holds(client, longest, 'long');
  },
  'add and replace': async (client) => {
    assert.strictEqual(await client.replace('key', '0'), false);
    assert.strictEqual(await client.add('key', '1'), true);
    assert.strictEqual(await client.add('key', '2'), false);
    assert.strictEqual(await client.replace('key', '3'), true);
    await holds(client, 'key', '3');
  },
  append: async (client) => {
    await assert.rejects(client.append('key', '0'), /not stored/i);
    await client.set('key', '1');
    assert.strictEqual(await client.append('key', '2'), true);
    await holds(client, 'key', '12');
  },
  delete: async (client) => {
    assert.strictEqual(await client.delete('key'), false);
    await client.set('key', '1');
    assert.strictEqual(await client.delete('key'), true);
    await holds(client, 'key', null);
  },
  'incr and decr': async (client) => {
    assert.deepStrictEqual(await client.increment('key', 5, { initial: 100 }), { success: true, value: 100 });
    assert.deepStrictEqual(await client.increment('key', 5), { success: true, value: 105 });
    assert.deepStrictEqual(await client.decrement('key', 6, {}), { success: true, value: 99 });
    assert.deepStrictEqual(await client.decrement('key', 1000, {}), { success: true, value: 0 });
    await client.set('key', 'word');
    await assert.rejects(client.increment('key', 1), /non-numeric/i);
  },
  touch: async (client) => {
    assert.strictEqual(await client.touch('key', NEVER), false);
    await client.set('key', '1', { expires: 1 });
    assert.strictEqual(await client.touch('key', NEVER), true);
    await sleep(2100);
    await holds(client, 'key', '1');
  },
  expiry: async (client) => {
    await client.set('short', '1', { expires: 1 });
    await client.set('kept', '1', { expires: NEVER });
    await sleep(2100);
    await holds(client, 'short', null);
    await holds(client, 'kept', '1');
  },
  'large values': async (client) => {
    for (const size of [4096, 65_536, 1_000_000]) {
      const value = Buffer.alloc(size, '0123456789');
      assert.strictEqual(await client.set('large', value), true);
      assert.ok((await client.get('large')).value.equals(value));
    }
    await assert.rejects(client.set('large', Buffer.alloc(2 << 20)), /too large/i);
    await holds(client, 'large', null);
  },
  'many keys': async (client) => {
    const keys = Array.from({ length: 2000 }, (_, i) => `key-${i}`);
    await Promise.all(keys.map((key) => client.set(key, `value of ${key}`)));
    await Promise.all(keys.map((key) => holds(client, key, `value of ${key}`)));
  },
  'many connections': async (client) => {
    await client.set('count', '0');
    const clients = Array.from({ length: 16 }, connect);
    const rounds = Array.from({ length: 100 });
    await Promise.all(clients.flatMap((own) => rounds.map(() => own.increment('count', 1))));
    clients.forEach((own) => own.close());
    assert.strictEqual((await client.increment('count', 0)).value, 1600);
  },
  stats: async (client) => {
    await client.set('key', '1');
    const figures = await new Promise((resolve, reject) => {
      client.stats((error, server, stats) => (error ? reject(error) : resolve(stats)));
    });
    assert.ok(Number(figures.curr_items) >= 1);
    assert.match(figures.version, /^1\.6\./);
  },
  flush: async (client) => {
    await client.set('key', '1');
    await client.flush();
    await holds(client, 'key', null);
  },
};

(async () => {
  for (const [name, check] of Object.entries(checks)) {
    const client = connect();
    await client.flush();
    try {
      await check(client);
    } catch (fault) {
      console.error(`${name}: ${fault.stack}`);
      process.exit(1);
    }
    client.quit();
    console.log(`ok ${name}`);
  }
})();

// Node.js libraries of Redis as a cache, against the server at the address that is given.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.cwd() + '/')
const Redis = require('ioredis')
const { createClient } = require('redis')
const { RateLimiterRedis } = require('rate-limiter-flexible')
const Redlock = require('redlock')
const { RedisStore } = await import(pathToFileURL(require.resolve('rate-limit-redis')))

const [host, port] = process.argv[2].split(':')
const ioredis = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 })

async function check (name, body) {
  await ioredis.flushall()
  await body()
  console.log(`ok ${name}`)
}

await check('ioredis: strings and pipelines', async () => {
  assert.equal(await ioredis.set('a', '1', 'EX', 100, 'NX'), 'OK')
  assert.equal(await ioredis.getex('a', 'EX', 50), '1')
  assert.deepEqual(await ioredis.pipeline().incr('a').get('a').del('a').exec(), [[null, 2], [null, '2'], [null, 1]])
  assert.deepEqual(await ioredis.mget('a', 'b'), [null, null])
})

await check('ioredis: multi and exec', async () => {
  assert.deepEqual(await ioredis.multi().set('a', '1').incrby('a', 4).getdel('a').exec(), [[null, 'OK'], [null, 5], [null, '5']])
  await ioredis.multi({ pipeline: false })
  assert.equal(await ioredis.set('a', 'x'), 'QUEUED')
  assert.deepEqual(await ioredis.exec(), [[null, 'OK']])
})

await check('ioredis: scan stream', async () => {
  await ioredis.mset(Object.fromEntries([...Array(500).keys()].map(n => [`key:${n}`, n])))
  const found = new Set()
  for await (const keys of ioredis.scanStream({ match: 'key:*', count: 50 })) keys.forEach(key => found.add(key))
  assert.equal(found.size, 500)
  assert.equal((await ioredis.keys('key:1?')).length, 10)
  assert.equal(await ioredis.unlink(...found), 500)
})

for (const RESP of [2, 3]) {
  await check(`node-redis: RESP ${RESP}`, async () => {
    const client = await createClient({ url: `redis://${host}:${port}`, RESP }).connect()
    assert.equal(await client.set('a', '1', { EX: 100 }), 'OK')
    assert.deepEqual(await client.multi().incr('a').ttl('a').getDel('a').exec(), [2, 100, '2'])
    for (let n = 0; n < 100; n++) await client.set(`n${n}`, n)
    let count = 0
    for await (const keys of client.scanIterator({ MATCH: 'n*' })) count += [keys].flat().length
    assert.equal(count, 100)
    assert.ok((await client.info('keyspace')).includes('keys=100'))
    client.destroy()
  })
}

await check('rate-limiter-flexible', async () => {
  const limiter = new RateLimiterRedis({ storeClient: ioredis, points: 3, duration: 60 })
  assert.equal((await limiter.consume('user')).remainingPoints, 2)
  assert.equal((await limiter.consume('user', 2)).remainingPoints, 0)
  await assert.rejects(limiter.consume('user'), denied => denied.msBeforeNext > 50_000)
  assert.ok(await limiter.delete('user'))
  assert.equal((await limiter.get('user')), null)
  await limiter.penalty('user', 2)
  assert.equal((await limiter.get('user')).consumedPoints, 2)
})

await check('redlock', async () => {
  const locks = new Redlock([ioredis], { retryCount: 0 })
  const lock = await locks.acquire?.(['lock'], 5000) ?? await locks.lock('lock', 5000)
  await assert.rejects(async () => await (locks.acquire?.(['lock'], 5000) ?? locks.lock('lock', 5000)))
  const longer = await lock.extend(10_000)
  assert.ok(await ioredis.pttl('lock') > 5000)
  await (longer.release?.() ?? longer.unlock())
  assert.equal(await ioredis.exists('lock'), 0)
})

await check('rate-limit-redis', async () => {
  const store = new RedisStore({ sendCommand: (name, ...rest) => ioredis.call(name, ...rest), prefix: 'rl:' })
  await store.init({ windowMs: 60_000 })
  assert.equal((await store.increment('user')).totalHits, 1)
  const hit = await store.increment('user')
  assert.equal(hit.totalHits, 2)
  assert.ok(hit.resetTime > Date.now() + 50_000)
  assert.equal((await store.get('user')).totalHits, 2)
  await store.decrement('user')
  assert.equal((await store.get('user')).totalHits, 1)
  await store.resetKey('user')
  assert.equal(await ioredis.exists('rl:user'), 0)
})

ioredis.disconnect()

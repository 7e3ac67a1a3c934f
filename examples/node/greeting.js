// Stores, reads and counts with memjs.
//
// Run it: npm install --prefix examples/node && node examples/node/greeting.js 127.0.0.1:11211
'use strict';

const memjs = require('memjs');

async function main() {
  const client = memjs.Client.create(process.argv[2] ?? '127.0.0.1:11211');

  await client.set('greeting', 'hello', { expires: 60 });
  const { value: greeting } = await client.get('greeting');
  console.log('greeting:', greeting.toString());

  await client.set('visits', '41');
  const { value: visits } = await client.increment('visits', 1);
  console.log('visits:', visits);

  // memjs has no multi-get: the requests of one client travel together on one connection.
  const both = await Promise.all(['greeting', 'visits'].map((key) => client.get(key)));
  console.log('together:', ...both.map(({ value }) => value.toString()));

  client.close();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

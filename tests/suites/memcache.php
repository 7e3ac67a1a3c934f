<?php
// PECL's memcache extension against the server at $HOST and $PORT. Prints a line for each check, as TAP has it.
declare(strict_types=1);

const SLABS = ['chunk_size', 'chunks_per_page', 'total_pages', 'total_chunks', 'used_chunks', 'free_chunks', 'free_chunks_end'];

function equal(mixed $received, mixed $expected): void
{
    if ($received !== $expected) {
        throw new Exception('expected ' . var_export($expected, true) . ', received ' . var_export($received, true));
    }
}

$checks = [
    'set and get' => function (Memcache $client): void {
        equal($client->get('key'), false);
        foreach (['', 'text', "END\r\n", 12, -1.5, [1, null], true, str_repeat('x', 100_000)] as $value) {
            equal($client->set('key', $value), true);
            equal($client->get('key'), $value);
        }
        equal($client->set('packed', str_repeat('x', 5000), MEMCACHE_COMPRESSED), true);
        equal($client->get('packed'), str_repeat('x', 5000));
    },
    'multi-get' => function (Memcache $client): void {
        foreach (range(0, 99) as $n) {
            $client->set("k$n", $n);
        }
        equal(count($client->get(array_map(fn ($n) => "k$n", range(0, 109)))), 100);
    },
    'add, replace, append, prepend' => function (Memcache $client): void {
        equal($client->replace('key', '0'), false);
        equal($client->append('key', '0'), false);
        equal($client->add('key', '1'), true);
        equal($client->add('key', '2'), false);
        equal($client->append('key', '2'), true);
        equal($client->prepend('key', '0'), true);
        equal($client->get('key'), '012');
    },
    'cas' => function (Memcache $client): void {
        $client->set('key', 'a');
        $client->get('key', $flags, $unique);
        equal($client->cas('key', 'b', 0, 0, $unique), true);
        equal($client->cas('key', 'c', 0, 0, $unique), false);
    },
    'counters' => function (Memcache $client): void {
        equal($client->increment('count'), false);
        $client->set('count', 10);
        equal($client->increment('count', 5), 15);
        equal($client->decrement('count', 100), 0);
    },
    'delete' => function (Memcache $client): void {
        equal($client->delete('key'), false);
        $client->set('key', '1');
        equal($client->delete('key'), true);
    },
    'statistics of slabs and items' => function (Memcache $client): void {
        $client->set('key', '1');
        $slabs = $client->getStats('slabs');
        $class = array_key_first($slabs);
        equal(array_slice(array_keys($slabs[$class]), 0, count(SLABS)), SLABS);
        equal((int) $slabs['active_slabs'] > 0, true);
        equal((int) $client->getStats('items')['items'][$class]['number'] > 0, true);
        equal($client->getStats('reset'), true);
    },
    'extended statistics and version' => function (Memcache $client): void {
        equal(array_key_exists('curr_items', current($client->getExtendedStats())), true);
        equal(str_starts_with($client->getVersion(), '1.6.'), true);
    },
];
foreach ($checks as $name => $check) {
    $client = new Memcache();
    $client->addServer(getenv('HOST'), (int) getenv('PORT'));
    try {
        $client->flush();
        @$check($client);
        echo "ok $name\n";
    } catch (Throwable $error) {
        fwrite(STDERR, "$error\n");
        echo "not ok $name\n";
    }
    $client->close();
}

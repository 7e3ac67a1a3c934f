<?php
// PHP's memcached extension against a running server: `php main.php 127.0.0.1:11211 text|binary`.
// Prints `ok NAME` for each check and ends at the first wrong answer.
declare(strict_types=1);

const NEVER = 100_000;

// Behaviours of libmemcached that the extension has no names for (`memcached_behavior_t`).
const IO_MSG_WATERMARK = 22;
const IO_BYTES_WATERMARK = 23;

set_error_handler(fn ($severity, $message, $file, $line) => throw new ErrorException($message, 0, $severity, $file, $line));

if ($argc !== 3 || !in_array($argv[2], ['text', 'binary'], true)) {
    fwrite(STDERR, "usage: main.php HOST:PORT text|binary\n");
    exit(2);
}
[$host, $port] = explode(':', $argv[1]);
$binary = $argv[2] === 'binary';

function connect(): Memcached
{
    global $host, $port, $binary;
    $client = new Memcached();
    $client->setOptions([
        Memcached::OPT_BINARY_PROTOCOL => $binary,
        Memcached::OPT_TCP_NODELAY => true,
        Memcached::OPT_COMPRESSION => false,
        Memcached::OPT_POLL_TIMEOUT => 20_000,
        // Past 500 unread replies or 64 KiB of requests, libmemcached 1.1 reads replies while it
        // writes, waits 50 ms for each whatever the timeout, and aborts the process if one is
        // late. A loaded machine is late, so these limits are out of this program's reach.
        IO_MSG_WATERMARK => 1_000_000,
        IO_BYTES_WATERMARK => 1 << 30,
    ]);
    $client->addServer($host, (int) $port);
    return $client;
}

function equal(mixed $received, mixed $expected): void
{
    if ($received !== $expected) {
        throw new Exception('expected ' . shorten($expected) . ', received ' . shorten($received));
    }
}

function shorten(mixed $value): string
{
    $text = var_export($value, true);
    return strlen($text) <= 200 ? $text : substr($text, 0, 200) . '...';
}

/** The call fails, and the server said why. */
function refused(Memcached $client, mixed $received, int $code): void
{
    equal($received, false);
    equal($client->getResultCode(), $code);
}

$checks = [
    'set and get' => function (Memcached $client): void {
        refused($client, $client->get('absent'), Memcached::RES_NOTFOUND);
        foreach (['', 'text', "\0\xff\r\n", "END\r\n", 12, -1.5, true, ['a' => [1, null]], str_repeat('x', 5000)] as $value) {
            equal($client->set('key', $value), true);
            equal($client->get('key'), $value);
        }
        $longest = str_repeat('k', 250);
        equal($client->set($longest, 'long'), true);
        equal($client->get($longest), 'long');
    },
    'multi-get' => function (Memcached $client): void {
        $items = ['a' => '1', 'b' => '', 'c' => ['x']];
        equal($client->setMulti($items), true);
        equal($client->getMulti(['a', 'absent', 'b', 'c']), $items);
        equal($client->getMulti(['absent']), []);
        $found = $client->getMulti(['c', 'absent', 'a'], Memcached::GET_PRESERVE_ORDER);
        equal($found, ['c' => ['x'], 'absent' => null, 'a' => '1']);
        equal($client->getDelayed(['a', 'b'], true), true);
        equal(array_column($client->fetchAll(), 'value', 'key'), ['a' => '1', 'b' => '']);
        equal($client->deleteMulti(['a', 'absent']), ['a' => true, 'absent' => Memcached::RES_NOTFOUND]);
    },
    'add and replace' => function (Memcached $client) use ($binary): void {
        // The binary protocol says why.
        refused($client, $client->replace('key', '0'), $binary ? Memcached::RES_NOTFOUND : Memcached::RES_NOTSTORED);
        equal($client->add('key', '1'), true);
        refused($client, $client->add('key', '2'), $binary ? Memcached::RES_DATA_EXISTS : Memcached::RES_NOTSTORED);
        equal($client->replace('key', '3'), true);
        equal($client->get('key'), '3');
    },
    'append and prepend' => function (Memcached $client): void {
        refused($client, $client->append('key', '0'), Memcached::RES_NOTSTORED);
        refused($client, $client->prepend('key', '0'), Memcached::RES_NOTSTORED);
        $client->set('key', '1');
        equal($client->append('key', '2'), true);
        equal($client->prepend('key', '0'), true);
        equal($client->get('key'), '012');
    },
    'cas' => function (Memcached $client): void {
        $client->set('key', '1');
        $first = $client->get('key', null, Memcached::GET_EXTENDED);
        equal($first['value'], '1');
        equal($client->cas($first['cas'], 'key', '2'), true);
        refused($client, $client->cas($first['cas'], 'key', '3'), Memcached::RES_DATA_EXISTS);
        equal($client->get('key'), '2');
        refused($client, $client->cas($first['cas'], 'absent', '3'), Memcached::RES_NOTFOUND);
    },
    'delete' => function (Memcached $client): void {
        refused($client, $client->delete('key'), Memcached::RES_NOTFOUND);
        $client->set('key', '1');
        equal($client->delete('key'), true);
        equal($client->get('key'), false);
    },
    'incr and decr' => function (Memcached $client): void {
        refused($client, $client->increment('key'), Memcached::RES_NOTFOUND);
        $client->set('key', 10);
        equal($client->increment('key', 5), 15);
        equal($client->get('key'), 15);
        equal($client->decrement('key', 3), 12);
        equal($client->decrement('key', 100), 0);
        $client->set('key', 'word');
        equal($client->increment('key'), false);
    },
    'touch' => function (Memcached $client): void {
        refused($client, $client->touch('key', NEVER), Memcached::RES_NOTFOUND);
        $client->set('key', '1');
        equal($client->touch('key', NEVER), true);
        equal($client->get('key'), '1');
        equal($client->touch('key', time() - 10), true);
        equal($client->get('key'), false);
    },
    'expiry' => function (Memcached $client): void {
        $client->set('past', '1', time() - 10);
        equal($client->get('past'), false);
        $client->set('short', '1', 1);
        $client->set('absolute', '1', time() + 1);
        $client->set('kept', '1', 1);
        $client->touch('kept', NEVER);
        sleep(3);
        equal($client->get('short'), false);
        equal($client->get('absolute'), false);
        equal($client->get('kept'), '1');
    },
    'large values' => function (Memcached $client): void {
        foreach ([4096, 65_536, 1_000_000] as $size) {
            $value = str_repeat('0123456789', intdiv($size, 10));
            equal($client->set('large', $value), true);
            equal($client->get('large') === $value, true);
        }
        equal($client->set('large', str_repeat('x', 2 << 20)), false);
        equal(in_array($client->getResultCode(), [Memcached::RES_E2BIG, Memcached::RES_SERVER_ERROR], true), true);
    },
    'many keys' => function (Memcached $client): void {
        $items = [];
        for ($i = 0; $i < 10_000; $i++) {
            $items["key-$i"] = "value-$i";
        }
        equal($client->setMulti($items), true);
        $found = $client->getMulti(array_keys($items));
        equal(count($found), count($items));
        ksort($found);
        ksort($items);
        equal($found === $items, true);
    },
    'buffered writes' => function (Memcached $client): void {
        $writer = connect();
        $writer->setOption(Memcached::OPT_BUFFER_WRITES, true);
        for ($i = 0; $i < 1000; $i++) {
            $writer->set("key-$i", (string) $i);
        }
        equal($writer->flushBuffers(), true);
        // The read goes over the same connection, after the writes.
        equal($writer->get('key-999'), '999');
        $keys = array_map(fn ($i) => "key-$i", range(0, 999));
        equal(count($client->getMulti($keys)), 1000);
    },
    'stats and version' => function (Memcached $client): void {
        $client->set('key', '1');
        [$figures] = array_values($client->getStats());
        equal($figures['curr_items'] >= 1, true);
        [$version] = array_values($client->getVersion());
        equal(str_starts_with($version, '1.6.'), true);
    },
    'flush' => function (Memcached $client): void {
        $client->set('key', '1');
        equal($client->flush(), true);
        equal($client->get('key'), false);
    },
];
// Only the binary protocol counts from nothing: the text protocol has no such command.
if ($binary) {
    $checks['incr with a first value'] = function (Memcached $client): void {
        equal($client->increment('key', 5, 100, NEVER), 100);
        equal($client->increment('key', 5, 100, NEVER), 105);
        equal($client->decrement('other', 5, 100, NEVER), 100);
        equal($client->decrement('other', 5, 100, NEVER), 95);
    };
}

foreach ($checks as $name => $check) {
    $client = connect();
    equal($client->flush(), true);
    try {
        $check($client);
    } catch (Throwable $fault) {
        fwrite(STDERR, "$name: $fault\n");
        exit(1);
    }
    $client->quit();
    echo "ok $name\n";
}

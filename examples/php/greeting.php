<?php
// Stores, reads and counts with PHP's memcached extension (Debian: apt-get install php-memcached).
//
// Run it: php examples/php/greeting.php 127.0.0.1:11211
declare(strict_types=1);

[$host, $port] = explode(':', $argv[1] ?? '127.0.0.1:11211');
$client = new Memcached();
$client->addServer($host, (int) $port);

if (!$client->set('greeting', 'hello', 60)) {
    fwrite(STDERR, $client->getResultMessage() . "\n");
    exit(1);
}
echo 'greeting: ', $client->get('greeting'), "\n";

$client->set('visits', 41);
echo 'visits: ', $client->increment('visits'), "\n";

$both = $client->getMulti(['greeting', 'visits']);
echo 'together: ', $both['greeting'], ' ', $both['visits'], "\n";

<?php
// phpredis, against the server at the address that is given: commands, scripts and sessions with locks.

[$host, $port] = explode(':', $argv[1]);
$redis = new Redis();
$redis->connect($host, (int) $port);

function expect($got, $wanted): void {
    if ($got !== $wanted) {
        throw new Exception('got ' . var_export($got, true) . ', not ' . var_export($wanted, true));
    }
}

$checks = [
    'strings' => function () use ($redis) {
        expect($redis->set('a', '1', ['nx', 'ex' => 100]), true);
        expect($redis->set('a', '2', ['nx']), false);
        expect($redis->incrBy('a', 4), 5);
        expect($redis->append('a', '0'), 2);
        expect($redis->getRange('a', 0, 0), '5');
        expect($redis->mGet(['a', 'none']), ['50', false]);
        expect($redis->incrByFloat('f', 1.5), 1.5);
        expect($redis->ttl('a'), 100);
        expect($redis->unlink('a', 'none'), 1);
    },
    'multi' => function () use ($redis) {
        expect($redis->multi()->set('a', '1')->incr('a')->get('a')->exec(), [true, 2, '2']);
        expect($redis->multi(Redis::PIPELINE)->setex('b', 100, 'x')->get('b')->exec(), [true, 'x']);
        $redis->multi()->set('a', '9');
        expect($redis->discard(), true);
        expect($redis->get('a'), '2');
    },
    'scan' => function () use ($redis) {
        for ($i = 0; $i < 300; $i++) {
            $redis->set("key:$i", $i);
        }
        $redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
        [$cursor, $found] = [null, []];
        while (($keys = $redis->scan($cursor, 'key:*', 50)) !== false) {
            array_push($found, ...$keys);
        }
        expect(count(array_unique($found)), 300);
        expect(count($redis->keys('key:1?')), 10);
        expect($redis->del($found) >= 300, true);
    },
    // As Laravel releases a lock and adds to its cache; the scripts are its own.
    'scripts of Laravel' => function () use ($redis) {
        $release = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    return redis.call(\"del\",KEYS[1])\nelse\n    return 0\nend";
        $add = "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])";
        expect($redis->eval($add, ['lock', 'mine', 10], 1), true);
        expect($redis->eval($add, ['lock', 'other', 10], 1), false);
        expect($redis->eval($release, ['lock', 'other'], 1), 0);
        expect($redis->eval($release, ['lock', 'mine'], 1), 1);
    },
    'sessions with locks' => function () use ($redis, $host, $port) {
        ini_set('session.save_handler', 'redis');
        ini_set('session.save_path', "tcp://$host:$port");
        ini_set('session.use_cookies', '0');
        ini_set('session.cache_limiter', '');
        ini_set('redis.session.locking_enabled', '1');
        ini_set('redis.session.lock_retries', '3');
        session_id('abc');
        for ($i = 1; $i <= 3; $i++) {
            // A lock that the last request has not released would keep this one waiting.
            expect(session_start(), true);
            $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
            expect($_SESSION['count'], $i);
            expect($redis->exists('PHPREDIS_SESSION:abc_LOCK'), 1);
            session_write_close();
            expect($redis->exists('PHPREDIS_SESSION:abc_LOCK'), 0);
        }
    },
];
ob_start();
$done = '';
foreach ($checks as $name => $check) {
    $redis->flushAll();
    $check();
    $done .= "ok $name\n";
    fwrite(STDOUT, "ok $name\n");
}

<?php
// A container with Laravel's own providers and the page's configuration: reports `ok NAME` for each check. See `script` in
// tests/recipes/stand.py.

use Illuminate\Cache\CacheServiceProvider;
use Illuminate\Cache\RateLimiter;
use Illuminate\Config\Repository;
use Illuminate\Container\Container;
use Illuminate\Session\SessionManager;

foreach (['Cache', 'Config', 'Container', 'Events', 'Session', 'Filesystem'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}

const SECONDS = 60;

/** An application's container, as each request has its own. */
function application(): Container
{
    $app = new Container();
    Container::setInstance($app);
    $app->instance('config', new Repository([
        'cache' => require 'config/cache.php',
        'session' => require 'config/session.php',
    ]));
    (new CacheServiceProvider($app))->register();
    return $app;
}

function check(string $name, bool $held): void
{
    echo $held ? 'ok ' : 'not ok ', $name, "\n";
}

function server(string $verb): void
{
    echo "server $verb\n";
    fgets(STDIN);
}

function comes(callable $holds): bool
{
    for ($end = time() + 30; time() < $end; usleep(100_000)) {
        if ($holds()) {
            return true;
        }
    }
    return false;
}

/** A session as the next request of a browser has it. */
function session(?string $id = null): Illuminate\Contracts\Session\Session
{
    $session = (new SessionManager(application()))->driver();
    $session->setId($id);
    $session->start();
    return $session;
}

function raw(): Memcached
{
    $raw = new Memcached();
    $raw->addServer('127.0.0.1', 11211);
    return $raw;
}

$cache = application()->make('cache')->store();
$value = ['words' => ['hello', 'wörld'], 'number' => 42];
$cache->put('greeting', $value, SECONDS);
check('a value comes back', $cache->get('greeting') === $value);
check('its key has the prefix', raw()->get('shop_cache_:greeting') === $value);
check('add keeps what is there', !$cache->add('greeting', 'other', SECONDS) && $cache->get('greeting') === $value);
$many = [];
for ($number = 0; $number < 200; $number++) {
    $many["many-$number"] = $number;
}
$cache->putMany($many, SECONDS);
check('200 keys at once', $cache->many(array_merge(array_keys($many), ['none'])) === $many + ['none' => null]);
$cache->forget('greeting');
check('a forgotten key is a miss', $cache->get('greeting', 'none') === 'none');
$remembered = [$cache->remember('computed', SECONDS, fn () => 7), $cache->remember('computed', SECONDS, fn () => 8)];
check('remember computes once', $remembered === [7, 7]);
$cache->put('counter', 40, SECONDS);
check('a counter', $cache->increment('counter', 2) === 42 && $cache->decrement('counter') === 41);
$cache->put('later', 1, 60 * 24 * 60 * 60);
check('a lifetime of 60 days', $cache->get('later') === 1);
$cache->put('short', 1, 1);
check('a lifetime of a second ends', comes(fn () => $cache->get('short') === null));
$cache->tags(['shelf', 'room'])->put('tagged', 1, SECONDS);
$found = $cache->tags(['shelf', 'room'])->get('tagged');
$cache->tags('shelf')->flush();
check('tags are flushed', $found === 1 && $cache->tags(['shelf', 'room'])->get('tagged') === null);
check('a key that is too long is not stored', !$cache->put(str_repeat('k', 251), 1, SECONDS));
check('a value over the limit is not stored', !$cache->put('large', random_bytes(2 << 20), SECONDS));

$lock = $cache->lock('report', 30);
$other = application()->make('cache')->store()->lock('report', 30);
check('a lock is held by one', $lock->get() && !$other->get());
check('only its owner gives it back', !$other->release() && $lock->release() && $other->get());
$limits = new RateLimiter($cache);
$allowed = 0;
for ($try = 0; $try < 8; $try++) {
    $limits->attempt('login', 5, function () use (&$allowed) { $allowed++; });
}
check('a rate limit allows 5 of 8', $allowed === 5);

$session = session();
$session->put('cart', ['chair']);
$session->save();
$id = $session->getId();
check('a session goes on', session($id)->get('cart') === ['chair']);

server('stop');
check('away: a read gives the default', $cache->get('computed', 'default') === 'default');
check('away: remember computes', $cache->remember('computed', SECONDS, fn () => 9) === 9);
check('away: a lock is not to be had', !$cache->lock('other', 30)->get());
check('away: a session is empty', session($id)->get('cart') === null);
server('start');
check('back: it is used again', comes(fn () => $cache->put('after', 1, SECONDS) && $cache->get('after') === 1));
server('pause');
check('hanging: a read gives the default', $cache->get('after', 'default') === 'default');
server('go on');
check('going on: it is used again', comes(fn () => $cache->put('after', 2, SECONDS) && $cache->get('after') === 2));

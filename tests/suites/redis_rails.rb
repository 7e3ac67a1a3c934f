# Rails' RedisCacheStore, against the server at the address that is given.

require "logger"
require "active_support"
require "active_support/cache"
require "active_support/cache/redis_cache_store"
require "active_support/notifications"

address = ARGV.fetch(0)
CACHE = ActiveSupport::Cache::RedisCacheStore.new(
  url: "redis://#{address}/0", namespace: "app", expires_in: 100, error_handler: ->(exception:, **) { raise exception }
)

def expect(got, wanted)
  raise "got #{got.inspect}, not #{wanted.inspect}" unless got == wanted
end

def check(name)
  CACHE.redis.flushall
  yield
  puts "ok #{name}"
end

check "read and write" do
  expect !!CACHE.write("a", { "x" => 1 }), true
  expect CACHE.read("a"), { "x" => 1 }
  expect !!CACHE.write("a", 2, unless_exist: true), false
  expect CACHE.fetch("b", expires_in: 5) { "made" }, "made"
  expect CACHE.exist?("b"), true
  expect !!CACHE.delete("b"), true
  expect CACHE.read("b"), nil
end

check "several keys" do
  CACHE.write_multi({ "a" => 1, "b" => 2 }, expires_in: 50)
  expect CACHE.read_multi("a", "b", "none"), { "a" => 1, "b" => 2 }
  expect CACHE.fetch_multi("a", "c") { |name| name * 2 }, { "a" => 1, "c" => "cc" }
  CACHE.delete_multi(%w[a b])
  expect CACHE.read("a"), nil
end

check "counters" do
  expect CACHE.increment("n", 5, expires_in: 50), 5
  expect CACHE.increment("n"), 6
  expect CACHE.decrement("n", 2), 4
end

check "delete_matched and clear" do
  300.times { |n| CACHE.write("key:#{n}", n) }
  CACHE.write("other", 1)
  CACHE.delete_matched("key:*")
  expect CACHE.read("key:7"), nil
  expect CACHE.read("other"), 1
  CACHE.clear
  expect CACHE.read("other"), nil
end

check "a pipeline and a transaction" do
  redis = CACHE.redis
  expect redis.pipelined { |pipe| pipe.set("a", "1"); pipe.incr("a") }, ["OK", 2]
  expect redis.multi { |pipe| pipe.incrby("a", 3); pipe.get("a") }, [5, "5"]
end

# frozen_string_literal: true

# Dalli against a running server: `ruby main.rb 127.0.0.1:11211 binary`. Prints `ok NAME` for each check and ends at the first wrong answer.
require 'dalli'

NEVER = 100_000
RAW = { raw: true }.freeze

abort 'usage: main.rb HOST:PORT binary' unless ARGV.length == 2 && ARGV[1] == 'binary'
Dalli.logger.level = Logger::ERROR

# With $TLS_AUTHORITY, the file of the server's authority, connections are encrypted.
TLS = if ENV['TLS_AUTHORITY']
        context = OpenSSL::SSL::SSLContext.new
        context.set_params(ca_file: ENV['TLS_AUTHORITY'], verify_mode: OpenSSL::SSL::VERIFY_PEER)
        { ssl_context: context }
      else
        {}
      end

def connect(**options)
  Dalli::Client.new(ARGV[0], socket_timeout: 20, error_when_over_max_size: true, **TLS, **options)
end

# The values of several keys, one by one over TLS: there, Dalli 3.0 asks the socket for its server, which only plain sockets know.
def all(client, keys)
  return client.get_multi(keys) if TLS.empty?

  keys.to_h { |key| [key, client.get(key)] }.compact
end

def equal(received, expected)
  raise "expected #{expected.inspect[0, 200]}, received #{received.inspect[0, 200]}" unless received == expected
end

CHECKS = {
  'set and get' => lambda do |client|
    equal client.get('absent'), nil
    ['', 'text', "\0\xFF\r\n".b, "END\r\n", 12, -1.5, [1, nil], { 'a' => :b }, 'x' * 5000].each do |value|
      equal client.set('key', value).nil?, false
      equal client.get('key'), value
    end
    longest = 'k' * 250
    client.set(longest, 'long')
    equal client.get(longest), 'long'
    equal client.fetch('made') { 'once' }, 'once'
    equal client.fetch('made') { 'twice' }, 'once'
  end,
  'multi-get' => lambda do |client|
    client.set('a', '1')
    client.set('b', '')
    equal client.get_multi('a', 'absent', 'b'), { 'a' => '1', 'b' => '' }
    equal client.get_multi('absent'), {}
    equal client.get_multi_cas('a', 'absent').transform_values(&:first), { 'a' => '1' }
  end,
  'add and replace' => lambda do |client|
    # Dalli hands on the unique of the reply, which is zero where nothing was stored.
    equal client.replace('key', '0'), 0
    equal client.get('key'), nil
    equal client.add('key', '1').nil?, false
    equal client.add('key', '2'), false
    equal client.replace('key', '3').nil?, false
    equal client.get('key'), '3'
  end,
  'append and prepend' => lambda do |client|
    equal client.append('key', '0'), false
    equal client.prepend('key', '0'), false
    client.set('key', '1', nil, RAW)
    equal client.append('key', '2'), true
    equal client.prepend('key', '0'), true
    equal client.get('key', RAW), '012'
  end,
  'cas' => lambda do |client|
    equal client.cas('key') { raise 'there is nothing to change' }, nil
    client.set('key', '1')
    equal client.cas('key') { |value| "#{value}2" }.nil?, false
    equal client.get('key'), '12'
    meddled = client.cas('key') do |value|
      client.set('key', 'theirs')
      "#{value}3"
    end
    equal meddled, false
    equal client.get('key'), 'theirs'
    _, unique = client.get_cas('key')
    equal client.replace_cas('key', 'x', unique + 1), false
    newer = client.replace_cas('key', 'mine', unique)
    equal newer.is_a?(Integer) && newer.positive? && newer != unique, true
    equal client.delete_cas('key', unique), false
    equal client.delete_cas('key', newer), true
    equal client.get('key'), nil
  end,
  'delete' => lambda do |client|
    equal client.delete('key'), nil
    client.set('key', '1')
    equal client.delete('key'), true
    equal client.get('key'), nil
  end,
  'incr and decr' => lambda do |client|
    equal client.incr('key'), nil
    equal client.incr('key', 5, NEVER, 100), 100
    equal client.incr('key', 5), 105
    equal client.decr('key', 6), 99
    equal client.decr('key', 1000), 0
    equal client.decr('other', 1, NEVER, 7), 7
    client.set('key', (2**64 - 1).to_s, nil, RAW)
    equal client.incr('key', 2), 1
  end,
  'touch' => lambda do |client|
    equal client.touch('key', NEVER), nil
    equal client.gat('key', NEVER), nil
    client.set('key', '1', 1)
    client.set('other', '1', 1)
    equal client.touch('key', NEVER), true
    equal client.gat('other', NEVER), '1'
    sleep 2.1
    equal all(client, %w[key other]), { 'key' => '1', 'other' => '1' }
  end,
  'expiry' => lambda do |client|
    client.set('short', '1', 1)
    client.set('kept', '1', NEVER)
    sleep 2.1
    equal client.get('short'), nil
    equal client.get('kept'), '1'
  end,
  'large values' => lambda do |client|
    [4096, 65_536, 1_000_000].each do |size|
      value = Random.new(size).bytes(size)
      equal client.set('large', value).nil?, false
      equal client.get('large') == value, true
    end
    # A client that is told of a larger limit than the server has: the server itself refuses.
    bold = connect(value_max_bytes: 4 << 20)
    refusal = begin
      bold.set('large', Random.new(1).bytes(2 << 20), nil, RAW)
    rescue Dalli::DalliError => e
      e.message
    end
    equal refusal.is_a?(String) && refusal.include?('Value too large'), true
    equal client.get('large'), nil
    client.set('compressed', '0123456789' * 100_000, nil, compress: true)
    equal client.get('compressed') == '0123456789' * 100_000, true
  end,
  'many keys' => lambda do |client|
    items = (0...10_000).to_h { |i| ["key-#{i}", "value-#{i}"] }
    client.multi { items.each { |key, value| client.set(key, value) } }
    equal all(client, items.keys) == items, true
    client.multi { items.each_key { |key| client.delete(key) } }
    equal all(client, items.keys), {}
  end,
  'many connections' => lambda do |client|
    client.incr('count', 1, NEVER, 0)
    threads = Array.new(8) do
      Thread.new do
        own = connect
        200.times { own.incr('count', 1) }
        own.close
      end
    end
    threads.each(&:join)
    equal client.incr('count', 0), 1600
  end,
  'stats and version' => lambda do |client|
    client.set('key', '1')
    equal client.stats.values.first['curr_items'].to_i.positive?, true
    equal client.stats(:settings).values.first.key?('maxbytes'), true
    equal client.version.values.first.start_with?('1.6.'), true
  end,
  'flush' => lambda do |client|
    client.set('key', '1')
    client.flush
    equal client.get('key'), nil
  end
}.freeze

CHECKS.each do |name, check|
  next if name == 'multi-get' && !TLS.empty?

  client = connect
  client.flush
  check.call(client)
  client.close
  puts "ok #{name}"
rescue StandardError => e
  warn "#{name}: #{e.full_message(highlight: false)}"
  exit 1
end

# An application of one file with the configuration of the page: reports `ok NAME` for each check. See `script` in
# tests/recipes/stand.py.
require 'dalli'
require 'connection_pool'
require 'rails'
require 'action_controller/railtie'
require 'rack/mock'

$stdout.sync = true
Warning[:deprecated] = false

class Shop < Rails::Application
  config.root = Dir.pwd
  config.eager_load = false
  config.secret_key_base = 'of this test'
  config.logger = Logger.new(nil)
  config.hosts.clear
  routes.append { get '/visits', to: 'visits#count' }
end

class VisitsController < ActionController::Base
  # Counts the visits of a session.
  def count
    session[:visits] = (session[:visits] || 0) + 1
    render plain: session[:visits].to_s
  end
end

Shop.initialize!

# A browser, which keeps its cookie.
class Browser
  def visits
    reply = Rack::MockRequest.new(Rails.application).get('/visits', 'HTTP_COOKIE' => @cookie.to_s, 'HTTP_HOST' => 'localhost')
    @cookie = reply['Set-Cookie'].split(';').first if reply['Set-Cookie']
    reply.body
  end
end

def check(name, held)
  puts "#{held ? 'ok' : 'not ok'} #{name}"
end

def server(verb)
  puts "server #{verb}"
  $stdin.gets
end

def comes
  deadline = Time.now + 30
  until Time.now > deadline
    return true if yield
    sleep 0.1
  end
  false
end

def commands(cache)
  value = { 'words' => %w[hello wörld], 'number' => 42 }
  cache.write('greeting', value)
  check 'a value comes back', cache.read('greeting') == value
  check 'its key has the namespace', !Dalli::Client.new('127.0.0.1:11211').get('shop:greeting').nil?
  check 'unless_exist keeps what is there', !cache.write('greeting', 1, unless_exist: true) && cache.read('greeting') == value
  many = (0...200).to_h { |number| ["many-#{number}", number] }
  cache.write_multi(many)
  check '200 keys at once', cache.read_multi(*many.keys, 'none') == many
  cache.delete('greeting')
  check 'a deleted key is a miss', cache.read('greeting').nil?
  check 'fetch computes once', [cache.fetch('computed') { 7 }, cache.fetch('computed') { 8 }] == [7, 7]
  cache.write('counter', 0, raw: true)
  4.times.map { Thread.new { 100.times { cache.increment('counter') } } }.each(&:join)
  check 'four threads count to 400', cache.read('counter', raw: true).to_i == 400
end

def bounds(cache)
  cache.write('later', 1, expires_in: 60.days)
  check 'a lifetime of 60 days', cache.read('later') == 1
  cache.write('short', 1, expires_in: 1)
  check 'a lifetime of a second ends', comes { cache.read('short').nil? }
  cache.write('old', 1, expires_in: 1, race_condition_ttl: 20)
  sleep 1.5
  second = nil
  first = cache.fetch('old', race_condition_ttl: 20) do
    second = cache.fetch('old', race_condition_ttl: 20) { 3 }
    2
  end
  check 'race_condition_ttl: one computes, the others have the old value', [first, second] == [2, 1]
  key = 'wörds and more ' * 40
  cache.write(key, 1)
  check 'a long key with spaces', cache.read(key) == 1
  cache.write('large', Random.bytes(2 << 20))
  check 'a value over the limit is not stored', cache.read('large').nil?
end

def failures(cache)
  browser = Browser.new
  check 'a session counts', Array.new(3) { browser.visits } == %w[1 2 3]
  cache.write('before', 1)
  server 'stop'
  check 'away: a read is a miss', cache.read('before').nil?
  check 'away: a write says so', !cache.write('during', 1)
  check 'away: fetch computes', cache.fetch('before') { 5 } == 5
  check 'away: a session is empty', browser.visits == '1'
  server 'start'
  check 'back: it is used again', (comes { cache.write('after', 1) && cache.read('after') == 1 })
  check 'back: a session counts', (comes { browser.visits == '2' })
  server 'pause'
  check 'hanging: a read is a miss', cache.read('after').nil?
  check 'hanging: fetch computes', cache.fetch('after') { 5 } == 5
  server 'go on'
  check 'going on: it is used again', (comes { cache.write('after', 2) && cache.read('after') == 2 })
end

commands(Rails.cache)
bounds(Rails.cache)
failures(Rails.cache)

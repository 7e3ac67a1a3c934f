# frozen_string_literal: true

# Dalli's verbs over the meta protocol, against the server at $HOST and $PORT.
require 'dalli'
require 'minitest/autorun'

class DalliMeta < Minitest::Test
  RAW = { raw: true }.freeze

  def setup
    Dalli.logger.level = Logger::ERROR
    @client = Dalli::Client.new("#{ENV.fetch('HOST')}:#{ENV.fetch('PORT')}", protocol: :meta)
    @client.flush_all
  end

  def teardown
    @client.close
  end

  def test_set_and_get
    [nil, '', 'text', "\0\xFF\r\n".b, 12, { 'a' => :b }, 'x' * 5000].each do |value|
      @client.set('key', value)
      value.nil? ? assert_nil(@client.get('key')) : assert_equal(value, @client.get('key'))
    end
  end

  def test_keys_with_spaces_and_unicode
    ['a key', 'schlüssel', 'k' * 250].each do |key|
      @client.set(key, key)
      assert_equal key, @client.get(key)
      assert_equal({ key => key }, @client.get_multi(key))
    end
  end

  def test_multi
    @client.set_multi({ 'a' => '1', 'b' => '2' }, 60) if @client.respond_to?(:set_multi)
    @client.quiet { 100.times { |n| @client.set("k#{n}", n) } }
    assert_equal 100, @client.get_multi((0..110).map { |n| "k#{n}" }).size
  end

  def test_add_replace_delete
    refute @client.replace('key', '0')
    assert @client.add('key', '1')
    refute @client.add('key', '2')
    assert @client.replace('key', '3')
    assert_equal '3', @client.get('key')
    assert @client.delete('key')
    refute @client.delete('key')
  end

  def test_append_and_prepend
    refute @client.append('key', 'x')
    @client.set('key', '1', nil, RAW)
    assert @client.append('key', '2')
    assert @client.prepend('key', '0')
    assert_equal '012', @client.get('key', RAW)
  end

  def test_counters
    assert_nil @client.incr('count', 1)
    assert_equal 10, @client.incr('count', 1, 0, 10)
    assert_equal 15, @client.incr('count', 5)
    assert_equal 0, @client.decr('count', 100)
  end

  def test_cas
    @client.set('key', '1')
    assert @client.cas('key') { |value| "#{value}2" }
    assert_equal '12', @client.get('key')
    lost = @client.cas('key') do |value|
      @client.set('key', 'other')
      value
    end
    refute lost
  end

  def test_touch_and_gat
    refute @client.touch('key', 10)
    @client.set('key', '1')
    assert @client.touch('key', 10)
    assert_equal '1', @client.gat('key', 20)
  end

  def test_stats_and_version
    assert_match(/\A1\.6\./, @client.version.values.first)
    assert_includes @client.stats.values.first, 'curr_items'
    assert_includes @client.stats(:settings).values.first, 'maxbytes'
    assert_includes @client.reset_stats, true
  end
end

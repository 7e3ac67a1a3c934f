# frozen_string_literal: true

# Stores, reads and counts with Dalli.
#
# Run it: gem install dalli && ruby examples/ruby/greeting.rb 127.0.0.1:11211
require 'dalli'

client = Dalli::Client.new(ARGV.fetch(0, '127.0.0.1:11211'))

client.set('greeting', 'hello', 60)
puts "greeting: #{client.get('greeting')}"

# A counter is stored as digits and not as a serialised Ruby object.
client.set('visits', '41', nil, raw: true)
puts "visits: #{client.incr('visits')}"

puts "together: #{client.get('greeting')} #{client.get('visits', raw: true).strip}"

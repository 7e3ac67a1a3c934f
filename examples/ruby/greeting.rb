# frozen_string_literal: true

# Stores, reads and counts with Dalli.
#
# Run it: gem install dalli && ruby examples/ruby/greeting.rb 127.0.0.1:11211
# Over TLS, with the certificate of the server's authority: ruby examples/ruby/greeting.rb cache.example:11211 ca.pem
require 'dalli'

options = {}
if ARGV[1]
  options[:ssl_context] = OpenSSL::SSL::SSLContext.new
  options[:ssl_context].set_params(ca_file: ARGV[1])
end
client = Dalli::Client.new(ARGV.fetch(0, '127.0.0.1:11211'), **options)

client.set('greeting', 'hello', 60)
puts "greeting: #{client.get('greeting')}"

# A counter is stored as digits and not as a serialised Ruby object.
client.set('visits', '41', nil, raw: true)
puts "visits: #{client.incr('visits')}"

puts "together: #{client.get('greeting')} #{client.get('visits', raw: true).strip}"

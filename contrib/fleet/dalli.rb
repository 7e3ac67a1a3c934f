# Dalli's ring over three servers, as Rails uses it: the client itself places keys, and is its own fail-over.
require 'dalli'

SERVERS = ['127.0.0.1:11211', '127.0.0.1:11212', '127.0.0.1:11213'].freeze

def client(servers = SERVERS)
  Dalli::Client.new(
    servers,
    # Seconds: above the slowest answer of a server that is well.
    socket_timeout: 0.25,
    # A server that fails twice in a row leaves for two seconds; its keys go to the others meanwhile.
    socket_max_failures: 2,
    socket_failure_delay: 0.01,
    down_retry_delay: 2,
    failover: true
  )
end

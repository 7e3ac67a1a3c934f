# A client with the configuration of contrib/fleet/dalli.rb, for load in another language: `dalli.rb CONFIGURATION SERVER...`.
# Reads `get KEY`, and `set KEY BYTES` with the value after it; answers `value BYTES` with the value after it, `miss`, `stored`,
# `not stored`, or `error` and what went wrong.
require ARGV.shift

Dalli.logger.level = Logger::FATAL
$stdout.binmode
$stdout.sync = true
CLIENT = client(ARGV.dup)

def answer(verb, key, bytes = nil)
  if verb == 'set'
    value = $stdin.read(bytes.to_i)
    return CLIENT.set(key, value, 0, raw: true) ? "stored\n" : "not stored\n"
  end
  value = CLIENT.get(key)
  value.nil? ? "miss\n" : "value #{value.bytesize}\n#{value}"
end

$stdin.binmode
while (line = $stdin.gets)
  begin
    $stdout.write(answer(*line.split))
  rescue StandardError => e
    $stdout.write("error #{e.class}: #{e.message}".tr("\n", ' ') + "\n")
  end
end

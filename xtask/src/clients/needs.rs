//! Programs and libraries that the client tests need.

use crate::tools::Tool;

pub const TOOLS: &[Tool] = &[
    Tool {
        probe: &["memccapable"],
        packages: &["libmemcached-tools"],
        without: "libmemcached's conformance tests",
    },
    Tool {
        probe: &["memcached"],
        packages: &["memcached"],
        without: "comparisons with memcached, reply by reply",
    },
    Tool {
        probe: &["nutcracker"],
        packages: &["nutcracker"],
        without: "twemproxy over three servers",
    },
    Tool {
        probe: &["redis-server"],
        packages: &["redis-server"],
        without: "comparisons with Redis, reply by reply",
    },
    Tool {
        probe: &["redis-cli"],
        packages: &["redis-tools"],
        without: "redis-cli",
    },
    Tool {
        probe: &["python3", "-c", "import ensurepip"],
        packages: &["python3", "python3-venv"],
        without: "every client test",
    },
    Tool {
        probe: &["go"],
        packages: &["golang-go"],
        without: "gomemcache",
    },
    Tool {
        probe: &["javac"],
        packages: &["default-jdk-headless"],
        without: "spymemcached",
    },
    Tool {
        probe: &["mvn"],
        packages: &["maven"],
        without: "spymemcached",
    },
    Tool {
        probe: &["node"],
        packages: &["nodejs"],
        without: "memjs",
    },
    Tool {
        probe: &["npm"],
        packages: &["npm"],
        without: "memjs",
    },
    Tool {
        probe: &["ruby", "-e", "require 'dalli'"],
        packages: &["ruby", "ruby-dalli"],
        without: "Dalli",
    },
    Tool {
        probe: &["php", "-r", "exit(extension_loaded('memcached') ? 0 : 1);"],
        packages: &["php-cli", "php-memcached"],
        without: "PHP's memcached extension",
    },
];

//! Programs and libraries of the machine that client tests need: looked for, installed in one go where that is possible, and named where not.

use crate::process::{apt_install, exists, program};
use std::process::Stdio;

/// Something that some client test needs.
struct Tool {
    /// A program on the search path; with arguments, a command that succeeds if the thing is there.
    probe: &'static [&'static str],
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
    /// What is left out without it.
    without: &'static str,
}

const TOOLS: &[Tool] = &[
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

impl Tool {
    fn is_here(&self) -> bool {
        match self.probe {
            [name] => exists(name),
            [name, arguments @ ..] => program(name, arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
            [] => unreachable!("every tool has a probe"),
        }
    }
}

/// Installs what is missing where that is possible, and says what is left out where it is not.
pub fn install() {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !tool.is_here()).collect();
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing
        .iter()
        .flat_map(|tool| tool.packages)
        .copied()
        .collect();
    if let Err(error) = apt_install(&packages) {
        println!("cannot install {}: {error:#}", packages.join(", "));
    }
    for tool in missing.into_iter().filter(|tool| !tool.is_here()) {
        println!(
            "{} is missing, so this is left out: {}. To have it: apt-get install {}",
            tool.probe.join(" "),
            tool.without,
            tool.packages.join(" ")
        );
    }
}

//! Runs engines that place keys on several servers, and shows what clients see of failures.

use crate::clients;
use crate::process::{self, program, run};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Fleet {
    /// Only this one (may be given several times)
    #[arg(long, value_enum)]
    engine: Vec<Engine>,
    /// The server to try instead of Glimmer; one that is called memcached is started as such
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// A memcached that is built with --enable-proxy, for memcached-proxy
    #[arg(long, value_name = "PATH")]
    proxy: Option<PathBuf>,
    /// Seconds for which a killed server is away, from 0.5 to 60
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How often each event happens, in a fleet of its own
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Fetch every client library, try a server as released, and print where that was, for
    /// docs/results/fleet.txt
    #[arg(long, conflicts_with_all = ["server", "check"])]
    release: bool,
    /// Only see whether the servers that this configuration names answer
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Measure only what a request costs proxies, with glimmer-bench
    #[arg(long)]
    cost: bool,
    /// Show the first errors of each event
    #[arg(long)]
    verbose: bool,
}

/// What places keys on servers.
#[derive(Clone, Copy, ValueEnum)]
pub enum Engine {
    /// pymemcache's HashClient
    Pymemcache,
    /// libmemcached's ketama, by pylibmc
    Libmemcached,
    /// Dalli's ring, in Ruby
    Dalli,
    /// spymemcached's ketama, in Java
    Spymemcached,
    /// The native client, over UDP
    Native,
    /// twemproxy, Debian's nutcracker
    Twemproxy,
    /// The same, which moves no key when a server fails
    TwemproxySteady,
    /// memcached's own proxy
    MemcachedProxy,
    /// The same with a copy of every item on each server
    MemcachedProxyReplicas,
    /// Envoy, over Redis' protocol
    Envoy,
}

impl Fleet {
    pub fn run(self) -> anyhow::Result<()> {
        let (python, profile) = match self.release {
            true => (clients::with_libraries()?, "release"),
            false => (clients::python()?, "debug"),
        };
        if self.release {
            process::released()?;
        } else if self.server.is_none() && self.check.is_none() {
            run(&mut process::cargo(&["build", "-p", "glimmer", "--bins"]))?;
        }
        let own = || process::target_dir().join(profile).join("glimmer");
        let server = self.server.unwrap_or_else(own);
        let mut command = program(&python, &["tests/fleet", "--server"]);
        command.arg(std::path::absolute(server)?);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg("--seconds").arg(self.seconds.to_string());
        command.arg("--repeat").arg(self.repeat.to_string());
        for engine in self.engine {
            let engine = engine.to_possible_value().expect("none is hidden");
            command.arg("--engine").arg(engine.get_name());
        }
        let mut path = |flag: &str, path: Option<&Path>| {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        };
        path("--proxy", self.proxy.as_deref());
        path("--check", self.check.as_deref());
        if self.cost {
            if !self.release {
                run(&mut process::cargo(&[
                    "build",
                    "-p",
                    "glimmer-bench",
                    "--bins",
                ]))?;
            }
            let bench = process::target_dir().join(profile).join("glimmer-bench");
            command.arg("--bench").arg(std::path::absolute(bench)?);
        }
        if self.verbose {
            command.arg("--verbose");
        }
        run(&mut command)?;
        if self.release {
            process::say_where_measured()?;
        }
        Ok(())
    }
}

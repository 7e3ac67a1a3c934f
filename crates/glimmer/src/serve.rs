//! `glimmer serve`: memcached's flags with memcached's meanings, and this server's own.

mod arguments;
pub mod extended;
mod idle;
mod listen;
mod values;

pub use arguments::Arguments;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use glimmer_base::limits;
use glimmer_dispatch::Settings;
use glimmer_server::Quotas;
use glimmer_server::config::{PORT_DEFAULT, PREFIX_DELIMITER_DEFAULT};
use glimmer_server::encryption::ListenerTls;
use glimmer_server::evict;
use glimmer_server::memory_plan::Needs;
use glimmer_server::{
    Accelerate, Accepts, Config, Liveness, MakeBody, MemoryPlan, Mode, Reader, TableKind,
    UnixSocket,
};
use listen::Listeners;
pub use listen::pages as addresses_of_pages;
use std::sync::Arc;
use std::time::Duration;
use values::Port;

impl Arguments {
    /// Serves until a signal stops it.
    pub fn run(self) -> anyhow::Result<()> {
        self.serve(None)
    }

    /// Serves until a signal stops it. SIGHUP reads the settings again by the reader.
    pub fn serve(self, reader: Option<Reader>) -> anyhow::Result<()> {
        if self.process.license {
            print!("{LICENSE}");
            return Ok(());
        }
        glimmer_server::serve(self.config()?, reader)?;
        Ok(())
    }

    /// The same with a body of the accelerator that `--accelerate` does not have.
    ///
    /// # Errors
    ///
    /// Why the server did not start, in one line. [`exit_code`] has the code for it.
    pub fn run_with(mut self, body: Arc<dyn MakeBody>) -> anyhow::Result<()> {
        self.accelerator.accelerate = Accelerate::Made(body);
        self.run()
    }

    /// The same with lines that the server is to print when it starts.
    pub fn noting(mut self, notices: Vec<String>) -> Arguments {
        self.notices.extend(notices);
        self
    }

    /// The port of TCP addresses that have none of their own.
    pub fn tcp_port(&self) -> Port {
        match (self.network.port, self.network.udp_port) {
            (Some(port), _) => port,
            (None, Port::None) => Port::Number(PORT_DEFAULT),
            (None, udp_port) => udp_port,
        }
    }

    /// What happens when memory is full. Fails if the flags contradict each other.
    fn mode(&self) -> anyhow::Result<Mode> {
        let mode = match (self.memory.disable_evictions, self.memory.mode) {
            (true, Some(Mode::Cache)) => {
                return Err(Refused::usage(
                    "-M means --mode store and excludes --mode cache; leave one of them out",
                ));
            }
            (true, _) => Mode::Store,
            (false, mode) => mode.unwrap_or(Mode::Cache),
        };
        let reason = match (mode, self.memory.table) {
            (Mode::Store, TableKind::Mica) => {
                "--evict: store mode (--mode store, -M) evicts nothing; leave --evict or -M out"
            }
            (_, TableKind::Memc3) => "--evict: --table memc3 evicts by CLOCK; leave --evict out",
            (Mode::Cache, TableKind::Mica) => return Ok(mode),
        };
        match self.memory.evict {
            Some(_) => Err(Refused::usage(reason)),
            None => Ok(mode),
        }
    }

    /// The configuration.
    ///
    /// # Errors
    ///
    /// What contradicts another setting, or cannot be had.
    pub fn config(self) -> anyhow::Result<Config> {
        if self.clients.enable_ssl && !cfg!(feature = "tls") {
            return Err(Refused::usage(NO_TLS));
        }
        let half = self.memory.memory_limit / 2;
        if let Some(item) = self.memory.max_item_size.filter(|&item| item > half) {
            return Err(Refused::usage(format!(
                "-I of {item} bytes: Cannot set item size limit higher than 1/2 of memory max. \
                 That is {half} bytes with -m {}; raise -m or lower -I",
                self.memory.memory_limit >> 20
            )));
        }
        let (mode, tcp_port) = (self.mode()?, self.tcp_port());
        let idle = self.without_effect(mode);
        let mut options = Config::default();
        extended::read(&self.clients.extended, &mut options)?;
        let mut notices = self.notices;
        notices.append(&mut options.notices);
        notices.extend(idle);
        let turn_requests = self.network.max_reqs_per_event;
        if turn_requests > limits::TURN_REQUESTS_MAX as usize {
            notices.push(format!(
                "-R {turn_requests} is lowered to {}, the most requests of a connection that one \
                 turn has room for",
                limits::TURN_REQUESTS_MAX
            ));
        }
        if self.network.unix_socket.is_some() && self.network.native_port != Port::None {
            return Err(Refused::usage(
                "--native-port excludes -s, which listens on a Unix socket only; leave one of \
                 them out",
            ));
        }
        options.tls.is_enabled = self.clients.enable_ssl;
        if self.clients.enable_ssl && self.network.port == Some(Port::None) {
            return Err(Refused::usage(
                "-Z: You cannot enable SSL without a TCP port.",
            ));
        }
        let is_local = self.network.unix_socket.is_some();
        let listeners = |port| match port {
            _ if is_local => Ok(Listeners::default()),
            port => listen::addresses(&self.network.listen, port, self.clients.enable_ssl),
        };
        let tcp = listeners(tcp_port)?;
        let udp = listeners(self.network.udp_port)?;
        let native = listeners(self.network.native_port)?.addresses;
        let http = match &self.network.http {
            Some(text) => listen::http(text)?,
            None => Vec::new(),
        };
        let unix = match self.network.unix_socket {
            Some(path) => Some(UnixSocket {
                path: listen::unix_path(path)?,
                mode: self.network.unix_mask,
            }),
            None => None,
        };
        let is_plain = |listener: &ListenerTls| *listener == ListenerTls::Plain;
        if self.clients.enable_ssl && !udp.encryption.iter().all(is_plain) {
            // As in memcached.
            notices.push("-U: -Z encrypts TCP only, and UDP crosses the network as it is".into());
        }
        if options.tls.has_no_roots(&tcp.encryption) {
            notices.push(
                "no client can show a certificate that is good: give the file of their roots with \
                 -o ssl_ca_cert=FILE"
                    .into(),
            );
        }
        let user_file = self
            .clients
            .auth_file
            .as_ref()
            .or(self.clients.users.as_ref());
        let default_protocol = match (user_file, self.clients.enable_sasl) {
            (_, true) => Accepts::Binary,
            (Some(_), false) => Accepts::Text,
            (None, false) => Accepts::Any,
        };
        let protocol = match &self.clients.protocol {
            Some(name) => values::protocol(name).map_err(Refused::usage)?,
            None => default_protocol,
        };
        let only_text = user_file.is_some() && !self.clients.enable_sasl;
        if only_text && tcp.protocols.contains(&Some(Accepts::Binary)) {
            const REASON: &str = "Cannot use binary protocol when ascii authentication enabled";
            return Err(Refused {
                exit_code: listen::OS_ERROR,
                message: format!("-l proto[binary]: {REASON}"),
            }
            .into());
        }
        let tcp_protocol = |asked_for: Option<Accepts>| match asked_for {
            Some(Accepts::Any) if only_text => Accepts::Text,
            asked_for => asked_for.unwrap_or(protocol),
        };
        let dispatch_settings = Settings {
            percentile: self.workers.dispatch_percentile,
            epoch_ms: self.workers.dispatch_epoch_ms,
            alpha: self.workers.dispatch_alpha,
            batch: self.workers.dispatch_batch.into(),
            cost: self.workers.dispatch_cost,
            large_cores: self.workers.large_cores,
            large_min: self.workers.large_min,
        };
        let workers = self.workers.threads.unwrap_or_else(cores);
        let default = glimmer_dispatch::default_for(self.workers.access, workers);
        let dispatch = self.workers.dispatch.as_deref().unwrap_or(default.name());
        let dispatch = glimmer_dispatch::named(dispatch, &dispatch_settings)
            .map_err(|expected| Refused::usage(format!("--dispatch: {expected}")))?;
        let mut config = Config {
            tcp: tcp.addresses,
            tcp_protocols: tcp.protocols.into_iter().map(tcp_protocol).collect(),
            tcp_names: tcp.names,
            tcp_encryption: tcp.encryption,
            liveness: Liveness {
                keepalive: unless_0(self.network.tcp_keepalive),
                user_timeout: unless_0(self.network.tcp_user_timeout),
            },
            udp: udp.addresses,
            udp_names: udp.names,
            native: listen::at_port(native, self.network.native_port),
            native_single_port: self.network.native_single_port,
            native_checks_reads: self.network.native_check_keyhash,
            native_direction: self.network.native_direction,
            accelerate: self.accelerator.accelerate,
            accelerate_slots: self.accelerator.accelerate_slots,
            accelerate_from: self.accelerator.accelerate_from.unwrap_or_default(),
            accelerate_policy: self.accelerator.accelerate_policy,
            slice_bytes: self.workers.slice_bytes.0,
            busy_poll: self.workers.busy_poll,
            http,
            unix,
            interfaces: (!self.network.listen.is_empty()).then(|| self.network.listen.join(",")),
            backlog: self.network.listen_backlog,
            protocol,
            turn_requests: turn_requests.min(limits::TURN_REQUESTS_MAX as usize) as u32,
            permits: self.clients.permits(),
            cas: !self.clients.disable_cas,
            auth_file: self.clients.auth_file,
            users: self.clients.users,
            address_quotas: Quotas {
                connections: self.clients.address_connections,
                requests: self.clients.address_requests,
                bytes: self.clients.address_bytes,
            },
            sasl: self.clients.enable_sasl,
            prefix_delimiter: (self.clients.prefix_delimiter)
                .or(self.clients.detail_delimiter)
                .unwrap_or(PREFIX_DELIMITER_DEFAULT),
            has_groups: self.clients.prefix_delimiter.is_some(),
            detail: self.clients.detail_delimiter.is_some(),
            memory_bytes: self.memory.memory_limit,
            workers,
            connections_max: self.network.conn_limit,
            item_bytes_max: self
                .memory
                .max_item_size
                .unwrap_or(limits::ITEM_BYTES_DEFAULT),
            item_bytes_hint: self.memory.item_size_hint,
            mode,
            access: self.workers.access,
            dispatch,
            dispatch_settings,
            packets: self.network.packet_transport.clone(),
            table: self.memory.table,
            evict: self.memory.evict.unwrap_or(evict::DEFAULT),
            evict_for: self.memory.evict_for,
            lru_threshold: self.memory.lru_threshold,
            hugepages: self.memory.hugepages,
            memory_file: self.memory.memory_file,
            memory_file_discard: self.memory.memory_file_discard,
            pin: self.workers.pin,
            verbosity: self.process.verbose,
            slow_ms: self.process.slow_ms,
            log_format: self.process.log_format,
            pid_file: self.process.pidfile,
            user: self.process.user,
            snapshot: self.memory.snapshot,
            daemon: self.process.daemon,
            lock_memory: self.memory.lock_memory,
            core_files: self.process.enable_coredumps,
            notices,
            // What only -o sets.
            ..options
        };
        config.check().map_err(glimmer_server::ServeError::from)?;
        let needs = Needs::of(&config);
        let workers = MemoryPlan::workers_fitting(needs);
        let fitting = Needs { workers, ..needs };
        if workers < config.workers && MemoryPlan::make(fitting).is_ok() {
            let asked = match self.workers.threads {
                Some(threads) => format!("-t {threads}"),
                None => format!("one worker for each of {} cores", config.workers),
            };
            config.notices.push(format!(
                "{asked}: -m {} has room for the buffers of only {workers}; raise -m for more",
                config.memory_bytes >> 20
            ));
            config.workers = workers;
        }
        if let (Some(asked), Ok(plan)) = (config.buffer_bytes, MemoryPlan::make(fitting)) {
            let given = plan.buffer_bytes_per_worker * config.workers;
            // What a division by the workers leaves over is no change.
            if given.abs_diff(asked) >= 1 << 20 {
                config.notices.push(format!(
                    "-o read_buf_mem_limit={} becomes {}: it is at least what the largest item \
                     (-I) needs in each worker, and at most a third of -m",
                    asked >> 20,
                    given >> 20
                ));
            }
        }
        Ok(config)
    }
}

/// memcached's words.
const NO_TLS: &str = "-Z: This server is not built with TLS support. Build it with the default \
                      features, or leave -Z out";

fn unless_0(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

const LICENSE: &str = include_str!("../LICENSE");

/// The exit code of memcached for the same error; `None` if memcached does not have this error.
pub fn exit_code(error: &anyhow::Error) -> Option<u8> {
    let refused = error.downcast_ref::<Refused>();
    let failed = error.downcast_ref::<glimmer_server::ServeError>();
    refused
        .map(|refused| refused.exit_code)
        .or(failed.map(glimmer_server::ServeError::exit_code))
}

/// The exit code for a value that the command line does not take. It is 64 where memcached checks
/// the value after it has read all flags, and otherwise 1.
pub fn exit_code_of_value(error: &clap::Error) -> Option<u8> {
    const CHECKED_LATER: [&str; 4] = [
        "--port ",
        "--udp-port ",
        "--max-item-size ",
        "--memory-limit ",
    ];
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_later = |name: &&str| argument.starts_with(name);
    let is_value = error.kind() == ErrorKind::ValueValidation;
    (is_value && CHECKED_LATER.iter().any(is_later)).then_some(USAGE)
}

/// A command line that cannot be served, with memcached's exit code for it.
#[derive(Debug)]
pub struct Refused {
    /// The exit code.
    pub exit_code: u8,
    message: String,
}

/// memcached's `EX_USAGE`.
const USAGE: u8 = 64;
/// `EX_CONFIG` of `sysexits.h`.
pub const CONFIGURATION: u8 = 78;

impl Refused {
    /// Settings that memcached refuses after it has read all flags.
    fn usage(message: impl Into<String>) -> anyhow::Error {
        Refused {
            exit_code: USAGE,
            message: message.into(),
        }
        .into()
    }

    /// Mistakes in a file of settings or in the environment.
    pub fn configuration(message: impl Into<String>) -> Refused {
        Refused {
            exit_code: CONFIGURATION,
            message: message.into(),
        }
    }

    /// memcached's exit code for a value that it checks while it parses it.
    fn value(message: impl Into<String>) -> anyhow::Error {
        Refused {
            exit_code: 1,
            message: message.into(),
        }
        .into()
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

fn cores() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(limits::WORKERS_MAX)
}

#[cfg(test)]
mod tests;

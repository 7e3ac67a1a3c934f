//! `glimmer bench load`.

mod arguments;
mod watch;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use glimmer_connect::{Admission, Tls};
use glimmer_loadgen::{
    driver::{Address, MASSTREE_VALUE_BYTES_MAX, Target},
    load::{
        self, Arrivals, Idle, LargeApart, Outcome, Pace, Pass, Plan, Requests, Summary, Tally,
        WarmUp, sweep,
    },
    workload::{Mix, Ttl, Workload, trace::Trace},
};
use glimmer_measure::{machine, report::Table};
use glimmer_notation as notation;
use glimmer_transport::{packet::PacketTransport, transports};
use serde::Serialize;

pub use arguments::{Arguments, TraceFormat};
use arguments::{ArrivalLaw, Length, PaceArguments, Protocol, WorkloadArguments};
use watch::Watch;

/// The first rate of a sweep in requests per second.
const SWEEP_FIRST_PER_S: f64 = 5_000.0;

/// Descriptors of the process beside those of its connections and threads, at most.
const DESCRIPTORS_SPARE: usize = 64;

/// Approximate overhead of an item in memcached in bytes; in this server it is smaller.
const ITEM_BYTES: u64 = 64;
const MIB: f64 = (1 << 20) as f64;

/// The machine-readable result.
#[derive(Serialize)]
struct Report<'a> {
    server: &'a Target,
    /// Version and cipher, if the connections are encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<&'a str>,
    plan: &'a Plan,
    slo: Option<sweep::Slo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Summary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<sweep::Probe>,
}

impl Arguments {
    /// Drives the server and prints the results.
    pub fn run(&self) -> Result<()> {
        let plan = self.plan()?;
        plan.check().map_err(|error| anyhow!(error))?;
        ensure!(
            self.files.json.is_none() || self.files.json != self.files.hdr_log,
            "--json and --hdr-log name one file: give each its own"
        );
        let connections = match self.transport() {
            // It carries all of them.
            Some(_) => 0,
            None => plan.connections + plan.large.map_or(0, |large| large.connections),
        };
        machine::allow_descriptors(connections, plan.all_threads() + DESCRIPTORS_SPARE)
            .context("the connections cannot be opened")?;
        for file in [&self.files.json, &self.files.hdr_log] {
            super::ensure_writable(file)?;
        }
        if let (Protocol::Masstree, Requests::Drawn(workload)) = (self.protocol, &plan.requests) {
            ensure!(
                workload.sizes.max() <= MASSTREE_VALUE_BYTES_MAX,
                "mtd keeps values of at most {MASSTREE_VALUE_BYTES_MAX} bytes: lower --value-bytes"
            );
            ensure!(
                workload.mix.ttl == Ttl::Never,
                "items of mtd never expire: leave --ttl out"
            );
        }
        let location = self.server.location();
        let target = Target {
            admission: Admission {
                host: location.host().map(str::to_owned),
                ..self.admission.read()?
            },
            transport: self.transport(),
            ..Target::new(Address::resolve(&location)?, self.protocol.into())
        };
        for &core in &self.client.cores {
            // Otherwise the threads would fail after all keys are stored.
            machine::on_core(Some(core), || ()).map_err(|error| {
                anyhow!("--cores {core}: {error}; `nproc` says how many cores there are, from 0 on")
            })?;
        }
        let filled = match &plan.requests {
            Requests::Drawn(workload) if !self.workload.no_fill => {
                Some((workload, self.fill(&target, workload)?))
            }
            _ => None,
        };
        let mut saturated = None;
        let (result, probes, ended) = match self.pace.sweep {
            true => self.sweep(&target, &plan)?,
            false => {
                let (outcome, logged) = self.measure(&target, &plan)?;
                saturated = not_in_time(&outcome);
                (Some(outcome.summary()), Vec::new(), logged)
            }
        };
        let tls = target.admission.tls.as_ref().and_then(Tls::agreed);
        if let Some(summary) = &result {
            print!("{summary}");
            if let Some(saturated) = saturated {
                println!("{saturated}");
            }
            if let Some(tls) = tls {
                println!("encrypted: {tls}");
            }
            if let Some(advice) = filled.and_then(|(keys, fill)| does_not_fit(keys, &fill, summary))
            {
                println!("\n{advice}");
            }
        }
        let written = super::write_json(
            &self.files.json,
            &Report {
                server: &target,
                tls,
                plan: &plan,
                slo: self.pace.slo,
                result,
                sweep: probes,
            },
        );
        match (ended, written) {
            (Err(first), Err(second)) => bail!("{first:#}; {second:#}"),
            (ended, written) => ended.and(written),
        }
    }

    /// What carries datagrams, if that is not what does so anyway.
    fn transport(&self) -> Option<Arc<dyn PacketTransport>> {
        let transport = &self.packet_transport;
        transport.expect_workers(usize::from(self.client.threads));
        (transport.name() != transports::TRANSPORTS[0].name).then(|| transport.clone())
    }

    fn plan(&self) -> Result<Plan> {
        let requests = self.workload.requests()?;
        let (pace, client) = (self.pace.pace(), &self.client);
        for (flag, is_given) in [
            ("--sleep", self.pace.sleep),
            ("--large-connections", client.large_connections.is_some()),
        ] {
            ensure!(
                !is_given || matches!(pace, Pace::Open { .. }),
                "{flag} is for an open loop: give --rate, --speed or --sweep, or leave it out"
            );
        }
        // By default, a trace is played from its beginning to its end.
        let measured = match (client.seconds, &self.workload.trace) {
            (Some(seconds), _) => Some(seconds),
            (None, Some(_)) => None,
            (None, None) => Some(10.0),
        };
        let warm_up = match (client.warm_up, &self.workload.trace) {
            (Some(Length::Seconds(seconds)), _) => WarmUp::Fixed(Duration::from_secs_f64(seconds)),
            (Some(Length::Steady), _) => {
                WarmUp::Steady(Duration::from_secs_f64(client.warm_up_max))
            }
            (None, Some(_)) => WarmUp::Fixed(Duration::ZERO),
            (None, None) => WarmUp::Fixed(Duration::from_secs(1)),
        };
        Ok(Plan {
            threads: usize::from(client.threads),
            connections: usize::from(client.connections),
            large: client.large_connections.map(|connections| LargeApart {
                connections: usize::from(connections),
                threads: usize::from(client.large_threads),
            }),
            cores: client.cores.clone(),
            read_bytes: client.read_bytes.map(|bytes| bytes as usize),
            kernel_timestamps: client.kernel_timestamps,
            warm_up,
            measured: measured.map(Duration::from_secs_f64),
            seed: client.seed,
            ..Plan::new(requests, pace)
        })
    }

    /// Stores all keys.
    fn fill(&self, target: &Target, workload: &Workload) -> Result<Tally> {
        let watch = Watch::keys(workload.keys);
        let tally = load::pass(
            target,
            workload,
            Pass::Write,
            0..workload.keys,
            &mut |keys| watch.at(keys),
        )?;
        watch.end();
        if tally.refused + tally.lost > 0 {
            eprintln!(
                "the server had no room for {} of {} keys, and {} requests were lost",
                tally.refused, workload.keys, tally.lost
            );
        }
        Ok(tally)
    }

    /// The results, and whether the log of the latencies could be written.
    fn measure(&self, target: &Target, plan: &Plan) -> Result<(Outcome, Result<()>)> {
        let mut watch = Watch::seconds(plan.measured);
        let mut log = None;
        let outcome = load::run(target, plan, None, &mut |progress| {
            if let (
                load::Progress::Measured {
                    interval, begun, ..
                },
                Some(file),
            ) = (&progress, &self.files.hdr_log)
            {
                let log = log.get_or_insert_with(|| load::hdr_log::Log::create(file, *begun));
                if let Ok(log) = log {
                    log.add(interval);
                }
            }
            watch.tell(&progress);
        })
        .with_context(|| format!("measuring {}", target.address))?;
        watch.end();
        let logged = log.map_or(Ok(()), |log| log?.finish());
        Ok((outcome, logged))
    }

    /// The result at the highest rate that the server sustained, what was measured at all rates,
    /// and the error that ended the sweep early. An error at the first rate is returned instead.
    fn sweep(
        &self,
        target: &Target,
        plan: &Plan,
    ) -> Result<(Option<Summary>, Vec<sweep::Probe>, Result<()>)> {
        let quantile = self.pace.slo.map_or(0.99, |slo| slo.quantile);
        let mut borne_at: Vec<(f64, Summary)> = Vec::new();
        let mut probes: Vec<sweep::Probe> = Vec::new();
        let ended = sweep::search(
            self.pace.rate.unwrap_or(SWEEP_FIRST_PER_S),
            self.pace.slo,
            |rate| {
                let plan = Plan {
                    pace: self.pace.open(self.pace.arrivals.at(rate)),
                    ..plan.clone()
                };
                let outcome = load::run(target, &plan, None, &mut |_| {})?;
                let probe = sweep::Probe {
                    offered_per_s: rate,
                    answered_per_s: rate * outcome.in_time_share(),
                    latency_us: outcome.latency_us(quantile),
                    late_us: outcome.lateness.value_at_quantile(quantile) as f64 / 1e3,
                    saturated: outcome.saturated,
                    client_saturated: outcome.client_saturated,
                };
                let borne = probe.is_borne(self.pace.slo);
                eprintln!(
                    "{} offered, {} answered, p{} {}, client late {}: {}",
                    notation::per_second(rate),
                    notation::per_second(probe.answered_per_s),
                    percent(quantile),
                    notation::microseconds(probe.latency_us),
                    notation::microseconds(probe.late_us),
                    match borne {
                        true => "sustained",
                        false if probe.is_limited_by_client() => "too much for the client",
                        false => "too much",
                    }
                );
                if borne {
                    borne_at.push((rate, outcome.summary()));
                }
                probes.push(probe);
                Ok(probe)
            },
        );
        let ended = match ended {
            Err(error) if probes.is_empty() => return Err(error),
            ended => ended.map(drop),
        };
        let mut table = Table::new([
            "offered".to_owned(),
            "answered".to_owned(),
            format!("p{}", percent(quantile)),
            "client late".to_owned(),
            "sustained".to_owned(),
        ]);
        let mut sorted = probes.clone();
        sorted.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
        for probe in &sorted {
            let borne = match probe.is_borne(self.pace.slo) {
                true => "yes",
                false if probe.is_limited_by_client() => "no: CLIENT",
                false => "no",
            };
            table.row([
                notation::per_second(probe.offered_per_s),
                notation::per_second(probe.answered_per_s),
                notation::microseconds(probe.latency_us),
                notation::microseconds(probe.late_us),
                borne.to_owned(),
            ]);
        }
        println!("{table}");
        if let Some(few) = few_requests(&probes, plan, quantile) {
            println!("{few}\n");
        }
        let limit = self
            .pace
            .slo
            .map_or("before saturation".to_owned(), |slo| format!("with {slo}"));
        let so_far = match ended {
            Ok(()) => "",
            Err(_) => " (the sweep ended early)",
        };
        let best = sweep::best(&probes, self.pace.slo).and_then(|probe| {
            let at_rate = |(rate, _): &(f64, Summary)| *rate == probe.offered_per_s;
            let last = borne_at.iter().rposition(at_rate);
            last.map(|last| borne_at.swap_remove(last))
        });
        match &best {
            Some((rate, _)) => println!(
                "highest rate {limit}{so_far}: {}\n",
                notation::per_second(*rate)
            ),
            None => println!("the server sustained none of the rates {limit}{so_far}"),
        }
        Ok((best.map(|(_, summary)| summary), probes, ended))
    }
}

impl WorkloadArguments {
    fn requests(&self) -> Result<Requests> {
        let Some(file) = &self.trace else {
            return Ok(Requests::Drawn(self.workload()?));
        };
        let mut trace = Trace::new(file.clone(), self.trace_format.map(Into::into))?;
        trace.set_on_miss |= self.set_on_miss;
        // What is written has the length that the key had when it was recorded.
        trace.altered.completes_lengths = trace.set_on_miss && trace.format.omits_lengths();
        Ok(Requests::Recorded(trace))
    }

    fn workload(&self) -> Result<Workload> {
        let named = &self.workload;
        let workload = Workload::preset(named, self.keys);
        let mut workload = workload.map_err(|error| anyhow!("--workload {named}: {error}"))?;
        if let Some(law) = self.dist {
            workload.law = law;
        }
        if let Some(bytes) = self.key_bytes {
            workload.key_bytes = usize::from(bytes);
        }
        if let Some(sizes) = &self.value_bytes {
            workload.sizes = sizes.clone();
        }
        if self.gets.is_some() || self.deletes.is_some() {
            let deletes = self.deletes.unwrap_or(0.0);
            let gets = self.gets.unwrap_or((workload.mix.get - deletes).max(0.0));
            let sets = 1.0 - gets - deletes;
            ensure!(
                sets > -1e-9,
                "--gets {gets} and --deletes {deletes} are more than all requests: lower one"
            );
            workload.mix = Mix {
                delete: deletes,
                set: if sets.abs() < 1e-9 { 0.0 } else { sets },
                ..Mix::reads(gets)
            };
        }
        workload.mix.keys_per_get = self.multi_get;
        workload.mix.set_on_miss |= self.set_on_miss;
        workload.mix.ttl = self.ttl;
        workload.check().map_err(|error| anyhow!(error))?;
        Ok(workload)
    }
}

impl PaceArguments {
    fn pace(&self) -> Pace {
        match (self.rate, self.speed) {
            (Some(rate), _) => self.open(self.arrivals.at(rate)),
            (None, Some(speed)) => self.open(Arrivals::Recorded(speed)),
            (None, None) if self.sweep => self.open(self.arrivals.at(SWEEP_FIRST_PER_S)),
            (None, None) => Pace::Closed {
                in_flight: self.pipeline,
            },
        }
    }

    fn open(&self, arrivals: Arrivals) -> Pace {
        Pace::Open {
            arrivals,
            burst: 1,
            idle: if self.sleep { Idle::Sleep } else { Idle::Spin },
        }
    }
}

/// A remark if many requests of an open loop were not answered in the measured time, although the
/// run did not end early. In a closed loop, no request is due, and so none was late.
fn not_in_time(outcome: &Outcome) -> Option<String> {
    let is_told = outcome.saturated || outcome.lateness.is_empty() || sweep::kept_up(outcome);
    (!is_told).then(|| {
        let late_us = outcome.lateness.value_at_quantile(0.5) as f64 / 1e3;
        let who = match late_us > outcome.latency_us(0.5) / 2.0 {
            true => "CLIENT SATURATED: the load generator could not send in time",
            false => "SATURATED: the server could not keep up",
        };
        let percent = (1.0 - outcome.in_time_share()) * 100.0;
        format!("{who}. {percent:.1}% of the requests were not answered in the measured time")
    })
}

/// A remark if the measurements of a sweep had too few requests for its percentile.
fn few_requests(probes: &[sweep::Probe], plan: &Plan, quantile: f64) -> Option<String> {
    let seconds = plan.measured?.as_secs_f64();
    let requests = |probe: &sweep::Probe| (probe.offered_per_s * seconds) as u64;
    let lowest = probes.iter().map(requests).min()?;
    (!load::is_told(quantile, lowest)).then(|| {
        format!(
            "FEW REQUESTS: with {lowest} in a measurement, fewer than {} lie above p{}. Give more \
             --seconds, or begin with a higher --rate",
            load::ABOVE_MIN,
            percent(quantile)
        )
    })
}

/// A quantile as a percentage. Rounded, because that is not exact.
fn percent(quantile: f64) -> f64 {
    (quantile * 1e7).round() / 1e5
}

/// Share of reads that may miss although all keys were stored: a lossy index forgets a few.
const MISSED_MAX: f64 = 0.001;

/// An explanation if the keys were stored by this fill and reads still miss. Workloads whose keys
/// expire, or are inserted later, miss by their nature.
fn does_not_fit(workload: &Workload, fill: &Tally, summary: &Summary) -> Option<String> {
    let mix = &workload.mix;
    let all_stay = mix.delete == 0.0 && mix.insert == 0.0 && mix.ttl == Ttl::Never;
    let reads = summary.tally.hits + summary.tally.misses;
    let missed = summary.tally.misses as f64 / reads.max(1) as f64;
    // What was lost on the way to the server says nothing about its memory.
    let lost = fill.lost as f64 / workload.keys as f64;
    (all_stay && missed > MISSED_MAX + lost).then(|| {
        let stored = match fill.writes == workload.keys {
            true => format!("all {} keys were stored first", workload.keys),
            false => format!(
                "{} of {} keys were stored first",
                fill.writes, workload.keys
            ),
        };
        let value_bytes = workload.sizes.mean(workload.keys);
        let item_bytes = (workload.key_bytes as u64 + ITEM_BYTES) as f64 + value_bytes;
        let needed_mib = (workload.keys as f64 * item_bytes * 1.25 / MIB).ceil();
        format!(
            "THE KEYS DO NOT FIT: {stored}, and {:.1}% of the reads missed, because the server has \
             too little memory.\n\
             Give it more (about -m {needed_mib}; the default of glimmer serve and memcached is \
             -m 64), or use fewer --keys.",
            missed * 100.0
        )
    })
}

impl ArrivalLaw {
    fn at(self, rate: f64) -> Arrivals {
        match self {
            ArrivalLaw::Poisson => Arrivals::Poisson(rate),
            ArrivalLaw::Fixed => Arrivals::Fixed(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
    };

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// A server that answers the reads of one connection, and is gone after it.
    #[test]
    fn a_sweep_whose_server_goes_away_keeps_what_it_has_measured() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            drop(listener);
            let mut requests = BufReader::new(client.try_clone().unwrap()).lines();
            while let Some(Ok(_)) = requests.next() {
                if client.write_all(b"END\r\n").is_err() {
                    return;
                }
            }
        });
        let directory = tempfile::tempdir().unwrap();
        let json = directory.path().join("sweep.json");
        let line = format!(
            "load {address} --sweep --rate 200 --sleep --no-fill --gets 1 --connections 1 \
             --seconds 0.1 --warm-up 0 --json {}",
            json.display()
        );
        let line: Line = clap::Parser::parse_from(line.split_whitespace());
        let error = format!("{:#}", line.arguments.run().unwrap_err());
        server.join().unwrap();
        assert!(error.contains("refused"), "{error}");
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let sweep = report["sweep"].as_array().unwrap();
        assert_eq!(sweep.len(), 1, "{report}");
        assert_eq!(sweep[0]["offered_per_s"], 200.0);
    }

    /// What is said after a run in which this many of 1,000 requests were answered in time, each
    /// after a second, and sent this late.
    fn said(in_time: u64, late_ns: u64) -> String {
        let mut outcome = Outcome {
            in_time,
            ..Outcome::idle()
        };
        outcome.reads.saturating_record_n(1_000_000_000, 1000);
        outcome.lateness.saturating_record_n(late_ns, 1000);
        not_in_time(&outcome).unwrap_or_default()
    }

    #[test]
    fn a_server_that_answers_nothing_is_to_blame() {
        let mut outcome = Outcome {
            lost: 1000,
            ..Outcome::idle()
        };
        outcome.lateness.saturating_record_n(50_000, 1000);
        let said = not_in_time(&outcome).unwrap();
        assert!(
            said.contains("the server could not keep up. 100.0%"),
            "{said}"
        );
    }

    #[test]
    fn a_sweep_with_few_requests_says_so() {
        let requests = Requests::Drawn(Workload::default());
        let plan = Plan {
            measured: Some(Duration::from_secs(2)),
            ..Plan::new(requests, Pace::Closed { in_flight: 1 })
        };
        let probe = |offered_per_s| sweep::Probe {
            offered_per_s,
            answered_per_s: offered_per_s,
            latency_us: 1.0,
            late_us: 0.0,
            saturated: false,
            client_saturated: false,
        };
        let probes = [5000.0, 8000.0].map(probe);
        assert_eq!(few_requests(&probes, &plan, 0.999), None);
        let few = few_requests(&probes, &plan, 0.9995).unwrap();
        assert!(
            few.contains("10000 in a measurement") && few.contains("p99.95."),
            "{few}"
        );
    }

    #[test]
    fn a_rate_that_was_not_answered_is_told() {
        assert_eq!(said(980, 1000), "");
        let server = said(500, 1000);
        assert!(server.starts_with("SATURATED: the server "), "{server}");
        assert!(server.contains(" 50.0% of the requests "), "{server}");
        let client = said(500, 900_000_000);
        assert!(client.starts_with("CLIENT SATURATED: "), "{client}");
    }
}

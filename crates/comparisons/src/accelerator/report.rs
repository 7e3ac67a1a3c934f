//! The results as tables.

use std::fmt;

use glimmer_measure::{report::Table, stats::Spread};

use crate::lab::Receiver;

use super::{
    bars,
    results::{Figure, MACHINE, MEMCACHED, OWN, P50, RATE, Report, Row},
    scenario::Scenario,
    subject::SOFTWARE,
};

/// The figures of a case, and their ratios.
fn tables(report: &Report, case: &str) -> [Table; 2] {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.case == case).collect();
    let scenario = rows[0].scenario;
    let keys = rows[0]
        .keys
        .map_or(String::new(), |keys| format!(", keys: {}", keys.name()));
    let has_ratio = scenario == Scenario::HitRatio;
    let mut heads = vec![format!("{}{keys}", scenario.title())];
    heads.extend(
        [
            "k requests/s",
            "p50 µs",
            "p99 µs",
            "CPU of the machine, µs/request",
            "of client and server",
            "accelerated",
            "lost",
        ]
        .map(str::to_owned),
    );
    heads.extend(has_ratio.then(|| "found".to_owned()));
    let mut figures = Table::new(heads);
    let (cpu, cpu_name) = report.cpu(case);
    let mut ratios = Table::new([
        case.to_owned(),
        "requests/s over memcached".to_owned(),
        "p50 over it".to_owned(),
        format!("{cpu_name} over it"),
        format!("requests/s over {SOFTWARE}"),
        "p50 over it".to_owned(),
        format!("{cpu_name} over it"),
    ]);
    for row in rows {
        let text = |figure: Figure, decimals| Spread::of(&row.each(figure)).text(decimals);
        let shares = row.samples.iter().map(|sample| sample.hit_share);
        let shares: Option<Vec<f64>> = shares.collect();
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        let lost: u64 = row.samples.iter().map(|sample| sample.lost).sum();
        let mut cells = vec![
            row.server.clone(),
            text(|sample| sample.operations_per_s / 1e3, 1),
            text(P50, 1),
            text(|sample| sample.latency.p99_us, 1),
            text(MACHINE, 2),
            text(OWN, 2),
            shares.map_or(String::new(), |shares| percent(Spread::of(&shares).median)),
            lost.to_string(),
        ];
        let found = || text(|sample| sample.hit_ratio * 100.0, 2);
        cells.extend(has_ratio.then(found));
        figures.row(cells);
        let ratio = |server: &str, figure: Figure| {
            let ratio = report.over(row, server, figure);
            ratio.map_or(String::new(), |ratio| ratio.text(2))
        };
        ratios.row([
            row.server.clone(),
            ratio(MEMCACHED, RATE),
            ratio(MEMCACHED, P50),
            ratio(MEMCACHED, cpu),
            ratio(SOFTWARE, RATE),
            ratio(SOFTWARE, P50),
            ratio(SOFTWARE, cpu),
        ]);
    }
    [figures, ratios]
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Servers: {}.", self.versions.join("; "))?;
        let place = match (self.loopback, self.receiver) {
            (true, _) => "All on loopback.",
            (false, Receiver::Sender) => {
                "Servers in one network namespace, the client in another, a veth pair for each \
                 server."
            }
            (false, Receiver::Thread) => {
                "Servers in one network namespace, the client in another, a veth pair for each \
                 server, with a thread on the server's core that receives where there is a packet \
                 program."
            }
        };
        let clients = match self.client_threads {
            1 => "one client thread on core 1".to_owned(),
            threads => format!("{threads} client threads on cores 1 to {threads}"),
        };
        writeln!(
            out,
            "{place} {} keys, {} slots. One server thread on core 0, {clients}. Median \
             (min..max) of {} repetitions of {} s, all servers in turn; a ratio compares \
             neighbouring repetitions.",
            self.keys, self.slots, self.repeat, self.seconds,
        )?;
        for case in self.cases() {
            let [figures, ratios] = tables(self, case);
            write!(out, "\n{figures}\n{ratios}")?;
        }
        if let Some(table) = bars::table(self) {
            write!(out, "\n{table}")?;
        }
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        write!(out, "{}", self.noise)
    }
}

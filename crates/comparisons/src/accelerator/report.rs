//! The results as tables.

use std::fmt;

use glimmer_measure::{
    report::{Column, Table},
    stats::Spread,
};

use crate::lab::Receiver;

use super::{
    bars,
    results::{Figure, MACHINE, MEMCACHED, OWN, P50, RATE, Report, Row},
    scenario::Scenario,
    subject::SOFTWARE,
};

/// The figures of a case, and their ratios. A cell is empty where a server has no such figure.
fn tables(report: &Report, case: &str) -> [Table; 2] {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.case == case).collect();
    let scenario = rows[0].scenario;
    let keys = rows[0]
        .keys
        .map_or(String::new(), |keys| format!(", keys: {}", keys.name()));
    let server = |head| Column::new(head, |row: &Row| row.server.clone());
    let figure = |head: &str, figure: Figure, decimals| {
        Column::new(head, move |row: &Row| {
            Spread::of(&row.each(figure)).text(decimals)
        })
    };
    let mut figures = vec![
        server(format!("{}{keys}", scenario.title())),
        figure("k requests/s", |sample| sample.operations_per_s / 1e3, 1),
        figure("p50 µs", P50, 1),
        figure(
            "p99 µs",
            |sample| sample.latency.p99_us.unwrap_or(f64::NAN),
            1,
        ),
        figure("CPU of the machine, µs/request", MACHINE, 2),
        figure("of client and server", OWN, 2),
        Column::new("accelerated", |row: &Row| {
            let shares = row.samples.iter().map(|sample| sample.hit_share);
            let shares: Option<Vec<f64>> = shares.collect();
            let percent = |share: f64| format!("{:.1}%", share * 100.0);
            shares.map_or(String::new(), |shares| percent(Spread::of(&shares).median))
        }),
        Column::new("lost", |row: &Row| {
            let lost: u64 = row.samples.iter().map(|sample| sample.lost).sum();
            lost.to_string()
        }),
    ];
    let found = || figure("found", |sample| sample.hit_ratio * 100.0, 2);
    figures.extend((scenario == Scenario::HitRatio).then(found));
    let (cpu, cpu_name) = report.cpu(case);
    let cpu_head = format!("{cpu_name} over it");
    let over = |head: &str, server: &'static str, figure: Figure| {
        Column::new(head, move |row: &Row| {
            let ratio = report.over(row, server, figure);
            ratio.map_or(String::new(), |ratio| ratio.text(2))
        })
    };
    // Only over servers that took part.
    let mut ratios = vec![server(case.to_owned())];
    for other in [MEMCACHED, SOFTWARE] {
        if report.row(case, other).is_some() {
            ratios.extend([
                over(&format!("requests/s over {other}"), other, RATE),
                over("p50 over it", other, P50),
                over(&cpu_head, other, cpu),
            ]);
        }
    }
    [
        Table::of(rows.iter().copied(), figures),
        Table::of(rows.iter().copied(), ratios),
    ]
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

//! Numbers of the README, which come from measurements that are committed beside it.

use crate::process;
use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(process::repository().join(path)).expect(path)
}

/// The servers of the table, and what the rows of docs/results.md call them.
const SERVERS: [(&str, &[&str]); 5] = [
    ("Glimmer", &["glimmer", "glimmer keyhash, beside large"]),
    ("Pogocache", &["pogocache"]),
    ("Valkey", &["valkey"]),
    (
        "memcached",
        &["memcached-1.6.45", "memcached-1.6.45, beside large"],
    ),
    (
        "Debian's memcached",
        &["memcached", "memcached, beside large"],
    ),
];

/// Each figure of the table is in a row of docs/results.md that is about the same server.
#[test]
fn the_table_is_that_of_the_results() {
    let results = read("docs/results.md").replace(',', "").replace("..", " ");
    let readme = read("README.md");
    let mut rows = readme.lines().filter(|line| line.starts_with('|'));
    let cells = |row: &str| -> Vec<String> {
        let cells = row.trim_matches('|').split('|');
        cells
            .map(|cell| cell.trim().trim_matches('*').replace(',', ""))
            .collect()
    };
    let heads = cells(rows.next().unwrap());
    let known: Vec<Vec<String>> = heads[1..]
        .iter()
        .map(|head| {
            let is_it = |(name, _): &&(&str, &[&str])| {
                let version = head.strip_prefix(name).map(str::trim);
                version.is_some_and(|it| it.is_empty() || it.starts_with(char::is_numeric))
            };
            let (_, names) = SERVERS
                .iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{head}"));
            let names: Vec<String> = names.iter().map(|name| name.replace(',', "")).collect();
            let is_about = |row: &&str| cells(row).iter().any(|cell| names.contains(cell));
            let is_part = |c: char| c.is_ascii_digit() || c == '.';
            let figures = results.lines().filter(is_about);
            let figures = figures.flat_map(|row| row.split(move |c| !is_part(c)));
            figures.map(str::to_owned).collect()
        })
        .collect();
    let mut figures = 0;
    for row in rows.skip(1) {
        let row = cells(row);
        for (figure, known) in row[1..].iter().zip(&known) {
            figures += usize::from(!figure.is_empty());
            assert!(
                figure.is_empty() || known.contains(figure),
                "{}: {figure} is not in docs/results.md for its server",
                row[0]
            );
        }
    }
    assert!(figures > 20, "{figures} figures in the table");
}

/// The arithmetic of large fleets has the CPU times of the results.
#[test]
fn a_fleet_is_computed_from_the_results() {
    let results = read("docs/results.md");
    let cpu_ns = |load: &str| -> f64 {
        let heading = format!("| {load}, 95% reads |");
        let (_, table) = results.split_once(&heading).expect(&heading);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|row| row.split(" | ").collect())
            .collect();
        let is_cost = |head: &&str| head.contains("CPU ns/op");
        // The heading that was cut off is the first one.
        let column = 1 + lines[0].iter().position(is_cost).unwrap();
        let row = lines.iter().find(|row| row[0] == "| glimmer").unwrap();
        let median = row[column].split(' ').next();
        median.unwrap().parse().unwrap()
    };
    let said = format!(
        "At the {} ns of CPU that a request takes if many come together, or {:.1} µs one by one",
        cpu_ns("pipeline 32"),
        cpu_ns("pipeline 1") / 1e3
    );
    let page = read("docs/scaling-out.md");
    let page: Vec<&str> = page.split_whitespace().collect();
    assert!(
        page.join(" ").contains(&said),
        "docs/scaling-out.md lacks: {said}"
    );
}

/// What the text says of the picture is what its data says.
#[test]
fn the_picture_is_described_by_its_data() {
    let data = read("docs/figures/mica-fig10.csv");
    let million = |systems: &[&str]| {
        let rows = data.lines().filter(|row| row.starts_with("small,"));
        let rates = rows.filter_map(|row| {
            let system = row.split(',').nth(1)?;
            let rate: f64 = row.split('"').nth(2)?.split(',').nth(1)?.parse().ok()?;
            systems.contains(&system).then_some(rate / 1e6)
        });
        let rates: Vec<f64> = rates.collect();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        format!("{least:.1} to {most:.1} million")
    };
    let readme = read("README.md");
    for (name, systems) in [
        ("Glimmer is at", &["glimmer crcw"][..]),
        ("Pogocache at", &["pogocache"]),
        ("memcached and Redis at", &["memcached", "redis"]),
    ] {
        let said = format!("{name} {}", million(systems));
        assert!(readme.contains(&said), "README.md lacks: {said}");
    }
}

//! Numbers of the README, which come from measurements that are committed beside it.

use crate::process;
use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(process::repository().join(path)).expect(path)
}

/// Each figure of the table is one of docs/results.md.
#[test]
fn the_table_is_that_of_the_results() {
    let results = read("docs/results.md").replace(',', "").replace("..", " ");
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let known: Vec<&str> = results.split(|c| !is_part(c)).collect();
    let readme = read("README.md");
    let mut figures = 0;
    for row in readme.lines().filter(|line| line.starts_with('|')).skip(2) {
        let name = row.split('|').nth(1).unwrap_or_default();
        for cell in row.split('|').skip(2) {
            let figure = cell.trim().trim_matches('*').replace(',', "");
            if !figure.is_empty() {
                figures += 1;
                assert!(
                    known.contains(&&*figure),
                    "{name}: {figure} is not in docs/results.md"
                );
            }
        }
    }
    assert!(figures > 20, "{figures} figures in the table");
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

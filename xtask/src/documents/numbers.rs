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

/// What the text says of the hit ratios is what their table says.
#[test]
fn the_hit_ratios_are_described_by_their_table() {
    let record = read("docs/results/hit-ratio.txt");
    let table: Vec<Vec<&str>> = record
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|'))
        .map(|cells| cells.map(|cell| cell.trim().trim_matches('*')).collect())
        .collect();
    let column = |name: &str| table[0].iter().position(|head| *head == name).unwrap();
    let at = |row: &[&str], name: &str| -> f64 { row[column(name)].parse().unwrap() };
    let rows = |patterns: &[&str]| -> Vec<&Vec<&str>> {
        let is_one = |row: &&Vec<&str>| {
            let pattern = row[0].split_once(", ").map(|(pattern, _)| pattern);
            pattern.is_some_and(|pattern| patterns.contains(&pattern))
        };
        table.iter().filter(is_one).collect()
    };
    let most = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::NEG_INFINITY, f64::max);
    let ahead = |row: &[&str], rule: &str| at(row, rule) - at(row, "s3fifo");

    let zipf = rows(&["zipf-0.6", "zipf-0.8", "zipf-0.99", "zipf-1.2"]);
    let mut said = vec![format!(
        "at most {:.2} points behind `s3fifo` and {:.2} ahead of it",
        most(&mut zipf.iter().map(|row| -ahead(row, "adaptive"))),
        most(&mut zipf.iter().map(|row| ahead(row, "adaptive")))
    )];
    let moving = rows(&["shift", "drift", "circle"]);
    let three = ["lru", "clock", "adaptive"];
    let (better, behind): (Vec<&Vec<&str>>, Vec<&Vec<&str>>) =
        (moving.iter().copied()).partition(|row| three.iter().all(|rule| ahead(row, rule) > 0.0));
    let by = |rows: &[&Vec<&str>], rules: &[&str], sign: f64| {
        let each = rows
            .iter()
            .flat_map(|row| rules.iter().map(move |rule| (row, rule)));
        most(&mut each.map(|(row, rule)| sign * ahead(row, rule)))
    };
    assert!(
        by(&behind, &three, 1.0) < 0.0,
        "a rule is ahead in some of the others"
    );
    said.push(format!(
        "by up to {:.2} points in {} of {} rows. In the others, `lru` and `clock` are behind it by \
         up to {:.2} points, and `adaptive` by up to {:.2}.",
        by(&better, &three, 1.0),
        better.len(),
        moving.len(),
        by(&behind, &three[..2], -1.0),
        by(&behind, &three[2..], -1.0)
    ));
    let others = &table[0][column("fifo")..column("best")];
    let sizes = rows(&["sizes", "sizes-small-hot", "sizes-large-hot"]);
    let leads = sizes
        .iter()
        .map(|row| at(row, "adaptive") - most(&mut others.iter().map(|other| at(row, other))));
    let leads: Vec<f64> = leads.collect();
    assert_eq!(leads.iter().filter(|lead| **lead < 0.0).count(), 1);
    said.push(format!(
        "`adaptive` finds up to {:.2} points more than every other rule, except in a cache of 1%",
        most(&mut leads.into_iter())
    ));
    let mut furthest: Vec<(f64, &str)> = table[1..]
        .iter()
        .filter(|row| row[0].ends_with('%'))
        .map(|row| {
            (
                at(row, "strict LRU").max(at(row, "S3-FIFO")) - at(row, "adaptive"),
                row[0],
            )
        })
        .collect();
    furthest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [a, b, c, d] = [0, 1, 2, 3].map(|place| {
        let (points, row) = furthest[place];
        format!("`{row}` by {points:.2}")
    });
    said.push(format!("the furthest behind: {a}, {b}, {c} and {d}."));

    let page = read("docs/eviction.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in said {
        assert!(page.contains(&said), "docs/eviction.md lacks: {said}");
    }
}

/// The measured bytes of an item are those of the record.
#[test]
fn the_bytes_of_an_item_are_those_of_the_record() {
    let record = read("docs/results/memory.txt");
    let row = record.lines().find(|line| line.starts_with("| glimmer "));
    let cells: Vec<&str> = row.unwrap().split('|').map(str::trim).collect();
    let items: f64 = cells[2].trim_end_matches(" M").parse().unwrap();
    let of_memory = 1024.0 * 1048576.0 / (items * 1e6);
    let said = format!(
        "{of_memory:.1} bytes of `-m`, and {} bytes of resident memory",
        cells[8]
    );
    assert!(
        read("docs/memory.md").contains(&said),
        "docs/memory.md lacks: {said}"
    );
}

/// What the text says of a live server under each policy is what the data of its figure say.
#[test]
fn the_policies_of_a_live_server_are_described_by_their_data() {
    let data = read("docs/figures/minos-live.csv");
    let highest = |panel: &str, policy: &str| {
        let start = format!("{panel},{policy},");
        let loads = data.lines().filter_map(|row| {
            let load: u32 = row.strip_prefix(&start)?.split(',').next()?.parse().ok()?;
            Some(load)
        });
        format!("{},000", loads.max().unwrap())
    };
    let both = |panel: &str| ["size-aware", "keyhash"].map(|policy| highest(panel, policy));
    let [ours, keyhash] = both("default workload (Figure 3)");
    let [ours_many, keyhash_many] = both("0.75% large (Figure 6)");
    let said = format!(
        "{ours} requests per second under `size-aware` and {keyhash} under `keyhash`; with 0.75% \
         large requests, {ours_many} and {keyhash_many}."
    );
    let page = read("docs/dispatch.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "docs/dispatch.md lacks: {said}");
}

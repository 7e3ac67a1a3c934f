//! The chart of the README: one panel of `mica-fig10`, without the paper's numbers.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{
    Data, catalogue, output,
    plot::{self, Plot},
};

/// Name of the chart's file.
pub const FILE: &str = "throughput.svg";
/// The figure whose data the chart shows, and the panel.
const FIGURE: &str = "mica-fig10";
const PANEL: &str = "small";
const TITLE: &str = "One server thread, 16-byte keys, 64-byte values";
/// The systems shown, and their names in the chart.
const SYSTEMS: [(&str, &str); 4] = [
    ("glimmer crcw", "Glimmer"),
    ("pogocache", "Pogocache"),
    ("memcached", "memcached"),
    ("redis", "Redis"),
];

/// The chart as SVG; `None` if the figure has not been measured.
pub fn svg(directory: &Path) -> Result<Option<String>> {
    let Some(record) = output::read(FIGURE, directory)? else {
        return Ok(None);
    };
    let mut spec = catalogue::find(FIGURE)
        .context("the chart's figure is in the catalogue")?
        .spec();
    (spec.title, spec.plot) = (TITLE, Plot::bars("", "operations per second").columns(1));
    let mut data = Data::default();
    for mut row in record.data.rows {
        let system = SYSTEMS.iter().find(|(system, _)| *system == row.series);
        if let Some((_, name)) = system.filter(|_| row.panel == PANEL) {
            let name = with_version(name, &record.machine.versions);
            (row.panel, row.series) = (String::new(), name);
            data.rows.push(row);
        }
    }
    plot::svg(&spec, &data).map(Some)
}

/// The name of a peer with the version that was measured, as an old one says little. Our own is the
/// one that the reader has.
fn with_version(name: &str, versions: &[String]) -> String {
    if name == "Glimmer" {
        return name.to_owned();
    }
    let is_its = |line: &&String| {
        let head = line.get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name))
    };
    let words = versions.iter().find(is_its).map(|line| line.split(' '));
    let number = |word: &&str| {
        let word = word.trim_start_matches("v=");
        word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    match words.and_then(|mut words| words.find(number)) {
        Some(version) => format!("{name} {}", version.trim_start_matches("v=")),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_the_version_that_was_measured() {
        let versions = [
            "glimmer 0.1.0",
            "pogocache 1.3.1",
            "memcached 1.6.45",
            "Redis server v=7.0.15 sha=00000000:0",
        ];
        let versions = versions.map(String::from);
        let names = SYSTEMS.map(|(_, name)| with_version(name, &versions));
        let expected = [
            "Glimmer",
            "Pogocache 1.3.1",
            "memcached 1.6.45",
            "Redis 7.0.15",
        ];
        assert_eq!(names, expected);
        assert_eq!(with_version("Redis", &versions[..3]), "Redis");
    }
}

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
const SYSTEMS: [(&str, &str); 3] = [
    ("glimmer crcw", "Glimmer"),
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
            (row.panel, row.series) = (String::new(), (*name).to_owned());
            data.rows.push(row);
        }
    }
    plot::svg(&spec, &data).map(Some)
}

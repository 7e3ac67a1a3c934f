//! Programs that export the statistics, which `tests/exporters` tries.

use super::Tried;
use super::record::Row;
use super::script;

pub fn run(with: &Tried) -> anyhow::Result<Vec<Row>> {
    script::rows(
        "tests/exporters",
        with,
        ("--exporter", with.exporter.as_deref()),
    )
}

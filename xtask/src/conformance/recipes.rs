//! The recipes of `docs/recipes`, which `tests/recipes` tries.

use super::Tried;
use super::record::Row;
use super::script;

pub fn run(with: &Tried) -> anyhow::Result<Vec<Row>> {
    script::rows(
        "tests/recipes",
        with,
        ("--object-cache", with.object_cache.as_deref()),
    )
}

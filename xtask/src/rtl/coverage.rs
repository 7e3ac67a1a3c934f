//! The simulation tests, and what of the circuit they have not reached.
//!
//! `GLIMMER_RTL_COVERAGE` names a folder. There each simulated circuit writes what it has reached,
//! as Verilator's `verilator_coverage` does.

use super::sources;
use crate::process::target_dir;
use crate::programs::{self, Program};
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::path::Path;

/// The share of lines that must be reached.
const LINES_MIN: f64 = 0.95;

/// Runs the tests and judges the coverage.
pub fn check(tests: &[Program]) -> anyhow::Result<()> {
    let folder = std::path::absolute(target_dir().join("rtl/coverage"))?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let path = folder.to_str().context("a path in UTF-8")?;
    programs::run(tests, &[("GLIMMER_RTL_COVERAGE", path)])?;
    let mut reached = Reached::default();
    for entry in std::fs::read_dir(&folder)? {
        let text = std::fs::read_to_string(entry?.path())?;
        for line in text.lines() {
            reached.count(line);
        }
    }
    reached.judge()
}

/// A place in the circuit: file and line.
type Line = (String, u32);

/// What was reached how often, over all circuits.
#[derive(Default)]
struct Reached {
    /// By the lines of a block and its place, over all instances and widths.
    blocks: BTreeMap<(String, String, String), (Vec<Line>, u64)>,
    /// Named cover points.
    points: BTreeMap<String, u64>,
}

impl Reached {
    /// Counts a line of Verilator's file: `C '<01>key<02>value...' count`.
    fn count(&mut self, line: &str) {
        let Some((keys, count)) = line
            .strip_prefix("C '")
            .and_then(|rest| rest.rsplit_once("' "))
        else {
            return;
        };
        let Ok(count) = count.trim().parse::<u64>() else {
            return;
        };
        let fields: BTreeMap<&str, &str> = keys
            .split('\u{1}')
            .filter_map(|field| field.split_once('\u{2}'))
            .collect();
        let field = |name| fields.get(name).copied().unwrap_or_default();
        let page = field("page");
        if page.starts_with("v_user") {
            *self.points.entry(field("o").to_owned()).or_default() += count;
        } else if page.starts_with("v_line") || page.starts_with("v_branch") {
            let file = Path::new(field("f"));
            // The files of cover points have lines of their own, which do not count.
            if !file
                .parent()
                .is_some_and(|folder| folder.ends_with(sources::RTL))
            {
                return;
            }
            let file = file_name(file).to_owned();
            let place = format!("{}:{}:{}", field("l"), field("n"), field("o"));
            let lines = lines(field("S"), field("l"));
            let lines = lines.into_iter().map(|line| (file.clone(), line)).collect();
            let key = (file, place, field("S").to_owned());
            let (_, total) = self.blocks.entry(key).or_insert((lines, 0));
            *total += count;
        }
    }

    fn judge(&self) -> anyhow::Result<()> {
        // A line counts as reached if everything on it was.
        let mut lines: BTreeMap<&Line, bool> = BTreeMap::new();
        for (block, count) in self.blocks.values() {
            for line in block {
                let is_reached = lines.entry(line).or_insert(true);
                *is_reached &= *count > 0;
            }
        }
        let missed: Vec<_> = lines.iter().filter(|(_, reached)| !**reached).collect();
        let share = 1.0 - missed.len() as f64 / lines.len().max(1) as f64;
        println!(
            "coverage: {} of {} lines, {:.1}%",
            lines.len() - missed.len(),
            lines.len(),
            100.0 * share
        );
        for ((file, line), _) in &missed {
            println!("not reached: {file}:{line}");
        }
        let unseen: Vec<_> = self
            .points
            .iter()
            .filter(|(_, count)| **count == 0)
            .collect();
        println!(
            "cover points: {} of {} reached",
            self.points.len() - unseen.len(),
            self.points.len()
        );
        for (name, _) in &unseen {
            println!("not reached: {name}");
        }
        if lines.is_empty() || self.points.is_empty() {
            bail!("the tests left no coverage behind");
        }
        if share < LINES_MIN {
            bail!(
                "{:.1}% of lines, and {:.0}% are wanted",
                100.0 * share,
                100.0 * LINES_MIN
            );
        }
        if !unseen.is_empty() {
            bail!("{} cover points were not reached", unseen.len());
        }
        Ok(())
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The lines of a block, such as `12-14,17`.
fn lines(block: &str, first: &str) -> Vec<u32> {
    let text = if block.is_empty() { first } else { block };
    let mut lines = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse(), to.parse()) {
            lines.extend::<std::ops::RangeInclusive<u32>>(from..=to);
        }
    }
    lines
}

//! What a figure has to say about itself.

use anyhow::Result;
use glimmer_comparisons::servers;
use serde::Serialize;

use crate::{Data, Run, Shape, plot::Plot};

/// A figure or table of a paper, or a claim that can be drawn.
///
/// To add one, write a file in [`crate::catalogue`] and enter it in [`crate::catalogue::all`].
pub trait Figure: Sync {
    /// What it is and what it needs.
    fn spec(&self) -> Spec;

    /// Measures it, and hands every point to `run`.
    fn measure(&self, run: &mut Run<'_>) -> Result<()>;

    /// Holds the data against what the paper says.
    fn judge(&self, data: &Data, shape: &mut Shape);
}

/// What a figure is.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name on the command line and in file names, `paper-figN`.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// Where it comes from: paper, figure, section.
    pub source: &'static str,
    /// What the paper concludes from it.
    pub claim: &'static str,
    /// How it is measured here, and where and why that differs from the paper.
    pub here: &'static str,
    /// Whether its numbers are timings.
    pub kind: Kind,
    /// What it needs.
    pub needs: Needs,
    /// What the columns of its data are called.
    pub columns: Columns,
    /// How it is drawn.
    pub plot: Plot,
}

/// Whether a figure comes out the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Its numbers are speeds: they depend on the machine and its load, and a quick run proves nothing.
    Timing,
    /// Its numbers follow from its parameters alone: its claims hold in a quick run too, or they do not hold.
    Exact,
}

/// What a figure needs to be measured at all.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Cores, the client's included.
    pub cores: usize,
    /// Cores of the paper's server; where the machine has fewer, the figure measures what it can and says so.
    pub cores_of_paper: usize,
    /// Memory in MiB that must be free.
    pub memory_mib: u64,
    /// Programs that it compares with, left out where they are not installed.
    pub peers: &'static [servers::Kind],
}

/// What the columns of a figure's data are called.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// What differs from one panel of the picture to the next.
    pub panel: &'static str,
    /// What differs from one line, or from one colour of bars, to the next.
    pub series: &'static str,
    /// What runs along the horizontal axis.
    pub x: &'static str,
    /// What was measured, with its unit.
    pub y: &'static str,
}

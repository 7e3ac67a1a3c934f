//! The interface of a figure.

use anyhow::Result;
use glimmer_comparisons::servers;
use serde::Serialize;

use crate::{Data, Run, Shape, plot::Plot};

/// A figure or table of a paper, or a claim that can be drawn.
///
/// To add one, write a file in [`crate::catalogue`] and enter it in [`crate::catalogue::pages`].
pub trait Figure: Sync {
    /// Its description and needs.
    fn spec(&self) -> Spec;

    /// Measures the data and passes every point to `run`.
    fn measure(&self, run: &mut Run<'_>) -> Result<()>;

    /// Checks claims of ours against the data. The ledger ([`crate::ledger`]) has what a paper
    /// states, and a figure has no part in the verdicts on that.
    fn judge(&self, _data: &Data, _shape: &mut Shape) {}

    /// What [`Figure::judge`] finds, with the range of what it finds in each repetition.
    fn judged(&self, data: &Data) -> Shape {
        let judged = |data: &Data| {
            let mut shape = Shape::default();
            self.judge(data, &mut shape);
            shape
        };
        let each: Vec<Shape> = data.each_repetition(|_| true).iter().map(judged).collect();
        let mut shape = judged(data);
        shape.show_ranges(&each);
        shape
    }
}

/// The description of a figure.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name on the command line and in file names, `paper-figN`.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// Its source: paper, figure, section.
    pub source: &'static str,
    /// The paper's conclusion.
    pub claim: &'static str,
    /// How it is measured here, and how and why that differs from the paper.
    pub here: &'static str,
    /// Whether its numbers are timings.
    pub kind: Kind,
    /// What the measurement needs.
    pub needs: Needs,
    /// Names of the data's columns.
    pub columns: Columns,
    /// How to draw it.
    pub plot: Plot,
}

/// Whether the numbers of a figure depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Speeds, which depend on the machine and its load. A quick run proves nothing.
    Timing,
    /// Numbers that depend only on parameters. The claims hold in a quick run, too.
    Exact,
    /// Counts that depend only on parameters. A quick run is too small to prove anything.
    Counted,
    /// Numbers of simulated servers, which depend only on parameters and committed costs. A quick
    /// run proves nothing.
    Simulated,
}

/// What a figure needs to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Cores, including the client's.
    pub cores: usize,
    /// Cores of the paper's server. With fewer cores, the figure measures what it can and notes the
    /// rest.
    pub cores_of_paper: usize,
    /// Free memory in MiB.
    pub memory_mib: u64,
    /// Programs to compare with. Those that are not installed are left out.
    pub peers: &'static [servers::Kind],
}

impl Needs {
    /// What a figure needs that one core measures alone: this much free memory in MiB.
    pub const fn one_core(memory_mib: u64) -> Needs {
        Needs {
            cores: 1,
            cores_of_paper: 1,
            memory_mib,
            peers: &[],
        }
    }

    /// What a figure needs whose server and client, or two threads, have a core each.
    pub const fn two_cores(cores_of_paper: usize, memory_mib: u64) -> Needs {
        Needs {
            cores: 2,
            cores_of_paper,
            ..Needs::one_core(memory_mib)
        }
    }
}

/// Names of the columns of a figure's data.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// What distinguishes the panels of the picture.
    pub panel: &'static str,
    /// What distinguishes the lines or colours.
    pub series: &'static str,
    /// The horizontal axis.
    pub x: &'static str,
    /// The measured value, with its unit.
    pub y: &'static str,
}

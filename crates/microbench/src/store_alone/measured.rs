//! Measures tables under loads, in turn.

use std::{rc::Rc, time::Duration};

use anyhow::{Result, ensure};
use glimmer_engine::Stages;
use glimmer_loadgen::workload::Popularity;
use glimmer_measure::{
    ceiling::{AHEAD, FAR_AHEAD, Region},
    machine,
};

use super::{
    Candidate,
    heap_pages::{HeapPages, Resident},
    report::{Ceiling, Report, Row},
    rig::{Rig, Task},
    stream::{Operation, Share},
};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Items of 8-byte keys and values.
    pub items: u32,
    /// Tables. The rates of the others are also shown relative to the first.
    pub candidates: Vec<Candidate>,
    /// The pages for tables by others.
    pub peer_pages: HeapPages,
    /// The loads.
    pub loads: Vec<Load>,
    /// Numbers of cores, with one worker per core.
    pub cores: Vec<usize>,
    /// Pipelines with their names: the complete one first, then those without one stage.
    pub pipelines: Vec<(String, Stages)>,
    /// Length of one repetition.
    pub measured: Duration,
    /// Repetitions.
    pub repeat: usize,
}

/// The load of a table.
#[derive(Clone, Debug)]
pub struct Load {
    /// The name of the key popularity.
    pub keys: String,
    /// The key popularity; `None` for reads of absent keys.
    pub popularity: Option<Popularity>,
    /// Share of reads in percent.
    pub gets_percent: u32,
}

impl Load {
    fn draw(&self, share: Share, items: u32) -> Vec<Operation> {
        match self.popularity {
            Some(popularity) => share.draw(popularity, f64::from(self.gets_percent) / 100.0, LIST),
            None => share.draw_absent(items, LIST),
        }
    }
}

/// Operations drawn for each worker. The list and the data it touches do not fit into the caches.
const LIST: usize = 1 << 23;
/// Size of the smallest region for measuring the machine, in bytes.
const REGION_BYTES_MIN: usize = 1 << 30;
/// Length of a measurement of the machine.
const CEILING_TIME: Duration = Duration::from_millis(300);

/// A filled table.
struct Filled {
    candidate: Candidate,
    cores: usize,
    /// Resident memory that the table takes.
    resident: Resident,
    rig: Box<dyn Rig>,
}

fn fill(options: &Options, progress: &dyn Fn(&str)) -> Result<Vec<Filled>> {
    let mut filled = Vec::new();
    for &candidate in &options.candidates {
        for &cores in &options.cores {
            let (name, items) = (candidate.name(), options.items);
            progress(&format!("{name}, cores: {cores}: storing {items} items"));
            let before = Resident::now()?;
            let rig = candidate.build_on(options.peer_pages, items, cores)?;
            filled.push(Filled {
                candidate,
                cores,
                resident: Resident::now()?.since(before),
                rig,
            });
        }
    }
    Ok(filled)
}

/// Measures every table under every load. Repetitions of the same load alternate between tables,
/// numbers of cores and pipelines. Each round also measures the machine. `progress` receives a line
/// for each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let cores_max = options.cores.iter().copied().max().unwrap_or(0);
    ensure!(
        (1..=machine::cores()).contains(&cores_max),
        "--cores {cores_max} is out of range: 1 to {}, the cores of this machine",
        machine::cores()
    );
    let mut tables = fill(options, progress)?;
    // Larger than any cache, and about as large as a store.
    let region_bytes = (options.items as usize * 40)
        .next_power_of_two()
        .max(REGION_BYTES_MIN);
    let region = Region::new(region_bytes)?;
    let ceiling = |&cores: &usize| Ceiling {
        cores,
        random_reads_per_s: Vec::new(),
        random_reads_far_ahead_per_s: Vec::new(),
    };
    let mut ceilings: Vec<Ceiling> = options.cores.iter().map(ceiling).collect();
    let mut rows = Vec::new();
    for load in &options.loads {
        let Load {
            keys, gets_percent, ..
        } = load;
        progress(&format!(
            "{keys}, {gets_percent}% reads: drawing operations"
        ));
        let lists = draw(load, &tables, options.items);
        let first = rows.len();
        for table in &tables {
            // Tables by others have no pipeline from which a stage could be removed.
            let pipelines = match table.candidate.is_ours() {
                true => &options.pipelines[..],
                false => &options.pipelines[..1],
            };
            rows.extend(pipelines.iter().map(|(pipeline, _)| Row {
                table: table.candidate.name(),
                is_ours: table.candidate.is_ours(),
                holds_any_length: table.candidate.holds_any_length(),
                keys: keys.clone(),
                gets_percent: *gets_percent,
                cores: table.cores,
                pipeline: pipeline.clone(),
                bytes_per_item: table.resident.bytes as f64 / f64::from(options.items),
                huge_part: table.resident.huge_bytes as f64 / table.resident.bytes.max(1) as f64,
                missed: 0.0,
                operations_per_s: Vec::new(),
            }));
        }
        for repetition in 0..options.repeat {
            for ceiling in &mut ceilings {
                let cores: Vec<usize> = (0..ceiling.cores).collect();
                let reads = region.random_reads_per_s::<AHEAD>(&cores, CEILING_TIME)?;
                ceiling.random_reads_per_s.push(reads);
                let reads = region.random_reads_per_s::<FAR_AHEAD>(&cores, CEILING_TIME)?;
                ceiling.random_reads_far_ahead_per_s.push(reads);
            }
            let mut measured = rows[first..].iter_mut();
            for (table, lists) in tables.iter_mut().zip(&lists) {
                let ours = table.candidate.is_ours();
                let pipelines = options
                    .pipelines
                    .iter()
                    .take(if ours { usize::MAX } else { 1 });
                for ((_, stages), row) in pipelines.zip(measured.by_ref()) {
                    let task = Task {
                        stages: *stages,
                        ..Task::lasting(options.measured)
                    };
                    let outcome = table.rig.run(lists, &task)?;
                    row.operations_per_s.push(outcome.operations_per_s);
                    row.missed = row.missed.max(outcome.missed());
                }
            }
            progress(&format!(
                "{keys}, {gets_percent}% reads: {}/{}",
                repetition + 1,
                options.repeat
            ));
        }
    }
    Ok(Report {
        items: options.items,
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        region_bytes,
        region_huge_bytes: region.huge_bytes()?,
        ceilings,
        rows,
    })
}

/// The lists of each table. A worker without restrictions, such as a single one, has the same list
/// for all tables.
fn draw(load: &Load, tables: &[Filled], items: u32) -> Vec<Rc<Vec<Vec<Operation>>>> {
    let mut lists: Vec<Rc<Vec<Vec<Operation>>>> = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let all = |table: &Filled| {
            let share = table.rig.share(0);
            share.map.cores() == 1 || share.reads_all && share.writes_all
        };
        let same = |other: &&Filled| other.cores == table.cores && all(other);
        let before = tables[..at].iter().position(|other| same(&other));
        let list = match before.filter(|_| all(table)) {
            Some(before) => lists[before].clone(),
            None => {
                let draw = |worker| load.draw(table.rig.share(worker), items);
                Rc::new((0..table.cores).map(draw).collect())
            }
        };
        lists.push(list);
    }
    lists
}

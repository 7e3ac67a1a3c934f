//! Tables without sockets and protocol. Ours are driven through the engine's pipeline with one
//! worker per core; every request goes to the right core, as with clients that direct their
//! requests (MICA §4.2.2). Other tables are driven by the same loop.

use std::{fmt, ops::Range};

use anyhow::Result;
use glimmer_engine::Stages;
use glimmer_microbench::store_alone::{
    Candidate, Mode, Ours, Rig,
    rig::{Outcome, Task, Until},
    stream::Operation,
};
use glimmer_store::evict::S3_FIFO;

use crate::{Point, Run, workload::Mix};

/// Operations drawn for each worker. The list does not fit into a core's private caches.
const LIST: usize = 1 << 22;
const LIST_QUICK: usize = 1 << 14;

/// A filled table.
pub struct Alone {
    name: String,
    workers: usize,
    items: u32,
    rig: Box<dyn Rig>,
    drawn: Option<(String, Vec<Vec<Operation>>)>,
}

impl Alone {
    /// A store of `items` tiny items (MICA §5.1) in an access mode, for this many workers.
    pub fn new(run: &Run<'_>, items: u32, mode: Mode, workers: usize) -> Result<Alone> {
        let name = format!("glimmer {}", mode.name());
        let candidate = Candidate::Ours(Ours::Cache(S3_FIFO), mode);
        Alone::of(run, name, items, workers, || {
            candidate.build(items, workers)
        })
    }

    /// A table for this many workers that `build` fills with `items` items.
    pub fn of(
        run: &Run<'_>,
        name: impl Into<String>,
        items: u32,
        workers: usize,
        build: impl FnOnce() -> Result<Box<dyn Rig>>,
    ) -> Result<Alone> {
        let name = name.into();
        run.say(format!("{name}, {workers} workers: storing {items} items"));
        Ok(Alone {
            name,
            workers,
            items,
            rig: build()?,
            drawn: None,
        })
    }

    /// Its name in figures.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Its workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Items that are there, if the table knows.
    pub fn held(&mut self) -> Option<u64> {
        self.rig.items()
    }

    /// Draws the operations for [`Self::operations_per_s`].
    pub fn draw(&mut self, run: &Run<'_>, mix: Mix) {
        self.draw_some(mix, run.pick(LIST, LIST_QUICK));
    }

    /// Draws this many operations for each worker.
    pub fn draw_some(&mut self, mix: Mix, count: usize) {
        let popularity = mix.popularity(self.items);
        self.draw_each(mix.to_string(), |rig, worker| {
            rig.share(worker).draw(popularity, mix.get_share(), count)
        });
    }

    /// Draws reads of absent keys.
    pub fn draw_absent(&mut self, run: &Run<'_>) {
        let (items, count) = (self.items, run.pick(LIST, LIST_QUICK));
        self.draw_each("keys that are not there".to_owned(), |rig, worker| {
            rig.share(worker).draw_absent(items, count)
        });
    }

    fn draw_each(&mut self, what: String, draw: impl Fn(&dyn Rig, usize) -> Vec<Operation>) {
        let lists = (0..self.workers).map(|worker| draw(&*self.rig, worker));
        self.drawn = Some((what, lists.collect()));
    }

    /// Operations per second over all workers.
    pub fn operations_per_s(&mut self, run: &Run<'_>, measured_ms: u64) -> Result<f64> {
        self.operations_per_s_through(Stages::ALL, run, measured_ms)
    }

    /// The same, with these stages of the pipeline.
    pub fn operations_per_s_through(
        &mut self,
        stages: Stages,
        run: &Run<'_>,
        measured_ms: u64,
    ) -> Result<f64> {
        let Some((_, lists)) = &self.drawn else {
            anyhow::bail!("no operations have been drawn");
        };
        self.rig
            .operations_per_s(lists, stages, run.measured(measured_ms))
    }

    /// Draws operations that store all of these new keys, in equal parts for all workers, among
    /// reads of those that are there.
    pub fn draw_new(&mut self, new: Range<u32>, get_share: f64) {
        let (items, workers) = (self.items, self.workers as u32);
        let part = (new.end - new.start) / workers;
        self.draw_each("new keys".to_owned(), |rig, worker| {
            let first = new.start + worker as u32 * part;
            rig.share(worker)
                .draw_new(items, first..first + part, get_share)
        });
    }

    /// Executes the operations once that were drawn.
    pub fn once(&mut self) -> Result<Outcome> {
        let Some((_, lists)) = &self.drawn else {
            anyhow::bail!("no operations have been drawn");
        };
        let task = Task {
            stages: Stages::ALL,
            fill: false,
            until: Until::End,
        };
        self.rig.run(lists, &task)
    }
}

impl fmt::Display for Alone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "engine alone, {} workers: {}", self.workers, self.name)?;
        match &self.drawn {
            Some((what, _)) => write!(out, ", {what}"),
            None => Ok(()),
        }
    }
}

/// Measures all stores under all mixes, in turn within each repetition, so that a slow spell of the
/// machine falls on all. `place` returns a rate's place in the picture.
pub fn rounds(
    run: &mut Run<'_>,
    repeat: usize,
    stores: &mut [Alone],
    mixes: &[Mix],
    measured_ms: u64,
    place: impl Fn(&Alone, Mix, f64) -> Point,
) -> Result<()> {
    let each = |mix: &Mix| {
        let named = stores.iter().enumerate();
        let case = |(which, store): (usize, &Alone)| Case {
            store: which,
            mix: *mix,
            name: format!(
                "engine alone, {} workers: {}, {mix}",
                store.workers, store.name
            ),
        };
        named.map(case).collect::<Vec<_>>()
    };
    let mut cases: Vec<Case> = mixes.iter().flat_map(each).collect();
    run.rounds(repeat, &mut cases, |case, run, _| {
        let store = &mut stores[case.store];
        store.draw(run, case.mix);
        let rate = store.operations_per_s(run, measured_ms)?;
        Ok(place(store, case.mix, rate))
    })
}

/// One of several stores, under one of several mixes.
struct Case {
    store: usize,
    mix: Mix,
    name: String,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// Measures stores in turn with reads of absent keys.
pub fn rounds_absent(
    run: &mut Run<'_>,
    repeat: usize,
    stores: &mut [Alone],
    measured_ms: u64,
    place: impl Fn(&Alone, f64) -> Point,
) -> Result<()> {
    stores.iter_mut().for_each(|store| store.draw_absent(run));
    run.rounds(repeat, stores, |store, run, _| {
        let rate = store.operations_per_s(run, measured_ms)?;
        Ok(place(store, rate))
    })
}

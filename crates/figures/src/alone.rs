//! Our store without sockets and protocol, driven through the engine's pipeline by as many cores as it has workers: every request is at the right core,
//! as with clients that direct their requests (MICA §4.2.2).

use std::fmt;

use anyhow::Result;
use glimmer_engine::Stages;
use glimmer_loadgen::store_alone::{self, Mode, Rig, Rule, stream::Operation};

use crate::{Point, Run, workload::Mix};

/// Operations drawn for each worker: their list outgrows a core's own caches.
const LIST: usize = 1 << 22;
const LIST_QUICK: usize = 1 << 14;

/// A filled store.
pub struct Alone {
    mode: Mode,
    workers: usize,
    items: u32,
    rig: Box<dyn Rig>,
    drawn: Option<(Mix, Vec<Vec<Operation>>)>,
}

impl Alone {
    /// A store of `items` tiny items (MICA §5.1) in an access mode, for so many workers.
    pub fn new(run: &Run<'_>, items: u32, mode: Mode, workers: usize) -> Result<Alone> {
        run.say(format!(
            "{}, {workers} workers: storing {items} items",
            mode.name()
        ));
        Ok(Alone {
            mode,
            workers,
            items,
            rig: store_alone::build(items, Rule::S3Fifo, mode, workers)?,
            drawn: None,
        })
    }

    /// Its access mode, as a name in figures.
    pub fn name(&self) -> String {
        format!("glimmer {}", self.mode.name())
    }

    /// Its workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Draws the operations that [`Self::operations_per_s`] goes through.
    pub fn draw(&mut self, run: &Run<'_>, mix: Mix) {
        let count = run.pick(LIST, LIST_QUICK);
        let popularity = mix.popularity(self.items);
        let draw = |worker| {
            self.rig
                .share(worker)
                .draw(popularity, mix.get_share(), count)
        };
        self.drawn = Some((mix, (0..self.workers).map(draw).collect()));
    }

    /// Operations per second of all workers together.
    pub fn operations_per_s(&mut self, run: &Run<'_>, measured_ms: u64) -> Result<f64> {
        let Some((_, lists)) = &self.drawn else {
            anyhow::bail!("no operations have been drawn");
        };
        self.rig
            .operations_per_s(lists, Stages::ALL, run.measured(measured_ms))
    }
}

impl fmt::Display for Alone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "engine alone, {} workers: {}",
            self.workers,
            self.name()
        )?;
        match &self.drawn {
            Some((mix, _)) => write!(out, ", {mix}"),
            None => Ok(()),
        }
    }
}

/// Measures stores in turn under each mix; `place` says where a rate belongs in the picture.
pub fn rounds(
    run: &mut Run<'_>,
    repeat: usize,
    stores: &mut [Alone],
    mixes: &[Mix],
    measured_ms: u64,
    place: impl Fn(&Alone, Mix, f64) -> Point,
) -> Result<()> {
    for &mix in mixes {
        stores.iter_mut().for_each(|store| store.draw(run, mix));
        run.rounds(repeat, stores, |store, run, _| {
            let rate = store.operations_per_s(run, measured_ms)?;
            Ok(place(store, mix, rate))
        })?;
    }
    Ok(())
}

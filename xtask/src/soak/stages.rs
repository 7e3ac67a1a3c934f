//! The stages, and the crates of each.

use clap::ValueEnum;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// The accelerator's circuit, simulated: crates/accel-rtl
    Circuit,
    /// The simulated circuit between real clients and a real server: crates/cosim
    Cosimulation,
    /// The accelerator's models, controller and packet program: crates/hotset, crates/accel-device,
    /// crates/xdp
    Hotset,
    /// Plans: crates/dispatch
    Dispatch,
    /// Dispatch policies in virtual time: crates/queueing
    Queueing,
    /// Oracles, and races with real threads: crates/store
    Store,
    /// The oracle of the engine, and models of commands: crates/engine
    Engine,
    /// Workers with real threads, and the native protocol over a faulty network: crates/node
    Node,
    /// Mutations of the fuzz corpus, and properties of parsers: crates/proto
    Protocols,
    /// Tables of others, and mirrors of ours: crates/microbench
    Tables,
    /// Whole servers with the accelerator under clients that change and read: crates/glimmer
    Servers,
    /// All tests of all other crates, whether they draw a seed or not
    Others,
    /// The simulator: whole servers and clients in virtual time
    Sim,
    /// The model checker, with one more switch between threads than in continuous integration
    Loom,
    /// Oracles and races of tiny tables under Miri
    Miri,
    /// The fuzz targets, guided by coverage
    Fuzz,
    /// Real clients against the running server
    Clients,
}

/// How a stage runs.
pub enum Kind {
    /// Tests of crates.
    Crates(Which),
    Simulator,
    Loom,
    Miri,
    Fuzz,
    Clients,
}

/// Tests of crates.
#[derive(Clone, Copy)]
pub enum Which {
    /// Those tests of these crates that draw a seed.
    Seeded(&'static [&'static str]),
    /// All tests of this crate: also those without a seed depend on the order of real threads.
    All(&'static [&'static str]),
    /// All tests of all crates that no other stage names.
    Others,
}

impl Stage {
    /// Every stage.
    pub fn all() -> impl Iterator<Item = Stage> {
        Stage::value_variants().iter().copied()
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.expect("no stage is hidden").get_name().to_owned()
    }

    /// How it runs.
    pub fn kind(self) -> Kind {
        Kind::Crates(match self {
            Stage::Circuit => Which::Seeded(&["glimmer-accel-rtl"]),
            Stage::Cosimulation => Which::All(&["glimmer-cosim"]),
            Stage::Hotset => {
                Which::Seeded(&["glimmer-hotset", "glimmer-accel-device", "glimmer-xdp"])
            }
            Stage::Dispatch => Which::Seeded(&["glimmer-dispatch"]),
            Stage::Queueing => Which::Seeded(&["glimmer-queueing"]),
            Stage::Store => Which::Seeded(&["glimmer-store"]),
            Stage::Engine => Which::Seeded(&["glimmer-engine"]),
            Stage::Node => Which::All(&["glimmer-node"]),
            Stage::Protocols => Which::All(&["glimmer-proto"]),
            Stage::Tables => Which::Seeded(&["glimmer-microbench"]),
            Stage::Servers => Which::Seeded(&["glimmer"]),
            Stage::Others => Which::Others,
            Stage::Sim => return Kind::Simulator,
            Stage::Loom => return Kind::Loom,
            Stage::Miri => return Kind::Miri,
            Stage::Fuzz => return Kind::Fuzz,
            Stage::Clients => return Kind::Clients,
        })
    }
}

/// The crates that some stage names.
pub fn named() -> Vec<&'static str> {
    let of = |stage: Stage| match stage.kind() {
        Kind::Crates(Which::Seeded(crates) | Which::All(crates)) => crates,
        _ => &[],
    };
    Stage::all().flat_map(of).copied().collect()
}

//! Designs that Minos (NSDI'19) speaks of and does not build.

use crate::Workload;
use glimmer_dispatch::{Plan, Role, Takes};
use rand::{SeedableRng, rngs::SmallRng};

/// Requests from which the sizes of small requests are known.
const DRAWN: u64 = 100_000;

/// What becomes of the plans of size-aware sharding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Design {
    /// They stay.
    Plain,
    /// A large core without large requests takes small ones from any RX queue, one at a time
    /// (§6.1).
    LargeTakeSmall,
    /// Small requests are sharded by size as well: each small core has the sizes of an equal number
    /// of them (§3.1). These are the sizes of small requests, in order.
    SmallBySize(Vec<u32>),
}

impl Design {
    /// Small requests of this workload are sharded by size as well.
    pub fn small_by_size(workload: &dyn Workload) -> Design {
        let mut rng = SmallRng::seed_from_u64(1);
        let drawn = (0..DRAWN).map(|_| workload.draw(0.0, &mut rng));
        let small = drawn.filter(|request| !request.is_large);
        let mut sizes: Vec<u32> = small.map(|request| request.bytes).collect();
        sizes.sort_unstable();
        Design::SmallBySize(sizes)
    }

    /// The plan of this design.
    pub(crate) fn of(&self, plan: &Plan) -> Plan {
        let (large_from, roles) = match self {
            Design::Plain => return plan.clone(),
            Design::LargeTakeSmall => (plan.large_from(), large_take_small(plan)),
            Design::SmallBySize(sizes) => (0, small_by_size(plan, sizes)),
        };
        let version = plan.version();
        Plan::by_size(*plan.layout(), large_from, roles).numbered(version)
    }
}

/// Whether requests by size are handed to this core, and nothing else.
fn is_large(role: &Role) -> bool {
    role.reads.is_empty()
}

fn large_take_small(plan: &Plan) -> Vec<Role> {
    let cores = plan.roles().len();
    let role = |(core, role): (usize, &Role)| match is_large(role) {
        true => Role {
            takes: Takes {
                rx: (0..cores).map(|place| (core + place) % cores).collect(),
                ..Takes::default()
            },
            ..role.clone()
        },
        false => role.clone(),
    };
    plan.roles().iter().enumerate().map(role).collect()
}

fn small_by_size(plan: &Plan, sizes: &[u32]) -> Vec<Role> {
    let small = plan.roles().iter().filter(|role| !is_large(role)).count();
    let cut = |place: usize| match place {
        0 => 0,
        _ if place == small => plan.large_from(),
        _ => sizes[sizes.len() * place / small].min(plan.large_from()),
    };
    let mut place = 0;
    let role = |role: &Role| match is_large(role) {
        true => role.clone(),
        false => {
            place += 1;
            Role {
                sizes: cut(place - 1)..cut(place),
                ..role.clone()
            }
        }
    };
    plan.roles().iter().map(role).collect()
}

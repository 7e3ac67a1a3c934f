//! What no rule can exceed, because it knows the future.

use std::collections::BTreeSet;

use crate::hit_ratio::trace::{Operation, Trace};

/// No read follows that a copy could answer.
const NEVER: u32 = u32::MAX;

/// The best hit ratio of a trace.
///
/// Where capacities are numbers of items, it is that of Belady's rule (IBM Systems Journal 1966):
/// the item that is read again last leaves, or is not taken in. Over all requests, the warm-up
/// among them, that is the optimum if every miss is followed by a write, and if no item is read
/// twice. Otherwise, it values each read by itself, and a rule may be better.
///
/// Where they are bytes, it is a bound (PFOO-U; Berger, Beckmann, Harchol-Balter, "Practical bounds
/// on optimal caching with variable object sizes", SIGMETRICS 2018): an answered read takes its
/// item's bytes for the time since the request before, and the cheapest reads are answered, as far
/// as all bytes at all times last.
pub fn optimum(trace: &Trace) -> f64 {
    let counted = trace.requests[trace.warm_up..].iter();
    let reads = counted
        .filter(|request| request.operation != Operation::Write)
        .count();
    let next = next_reads(trace);
    let hits = match trace.in_bytes {
        false => belady(trace, &next),
        true => cheapest(trace, &next),
    };
    hits as f64 / reads.max(1) as f64
}

/// For each request, the next one for the same key, if that is a read.
fn next_reads(trace: &Trace) -> Vec<u32> {
    let mut next = vec![NEVER; trace.requests.len()];
    let mut coming = vec![NEVER; trace.items.len()];
    for (at, request) in trace.requests.iter().enumerate().rev() {
        let coming = &mut coming[request.key as usize];
        next[at] = *coming;
        *coming = match request.operation {
            Operation::Write => NEVER,
            Operation::Read | Operation::Fetch => at as u32,
        };
    }
    next
}

fn belady(trace: &Trace, next: &[u32]) -> u64 {
    let mut held: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut held_until = vec![NEVER; trace.items.len()];
    let mut expiry = vec![NEVER; trace.items.len()];
    let mut hits = 0;
    for (at, request) in trace.requests.iter().enumerate() {
        let key = request.key as usize;
        let was_held = held.remove(&(held_until[key], request.key));
        held_until[key] = NEVER;
        let is_read = request.operation != Operation::Write;
        if is_read && was_held {
            hits += u64::from(at >= trace.warm_up);
        } else {
            if request.operation == Operation::Read {
                continue;
            }
            expiry[key] = match trace.items[key].lifetime {
                0 => NEVER,
                lifetime => at as u32 + lifetime,
            };
        }
        // What expires before it is read is worth nothing.
        if next[at] < expiry[key] {
            held_until[key] = next[at];
            held.insert((next[at], request.key));
            if held.len() as u64 > trace.capacity {
                let (_, last) = held.pop_last().expect("it has just been put in");
                held_until[last as usize] = NEVER;
            }
        }
    }
    hits
}

fn cheapest(trace: &Trace, next: &[u32]) -> u64 {
    let cost = |(at, &read): (usize, &u32)| {
        let is_counted = read != NEVER && read as usize >= trace.warm_up;
        let since = at.max(trace.warm_up) as u64;
        let weight = u64::from(trace.items[trace.requests[at].key as usize].weight);
        is_counted.then(|| weight * (u64::from(read) - since))
    };
    let mut costs: Vec<u64> = next.iter().enumerate().filter_map(cost).collect();
    costs.sort_unstable();
    let mut left = trace.capacity * (trace.requests.len() - trace.warm_up) as u64;
    let affordable = |cost: &&u64| {
        let rest = left.checked_sub(**cost);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    costs.iter().take_while(affordable).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::trace::{Item, Request};
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::collections::HashMap;

    const KEYS: u32 = 5;

    fn tiny(rng: &mut SmallRng, in_bytes: bool) -> Trace {
        let operation = |rng: &mut SmallRng| match rng.random_range(0..3) {
            0 => Operation::Write,
            _ => Operation::Fetch,
        };
        let request = |_| Request {
            key: rng.random_range(0..KEYS),
            operation: operation(rng),
        };
        let requests = (0..14).map(request).collect();
        let item = |_| Item {
            weight: if in_bytes { rng.random_range(1..4) } else { 1 },
            lifetime: 0,
        };
        Trace {
            requests,
            items: (0..KEYS).map(item).collect(),
            capacity: rng.random_range(1..4),
            in_bytes,
            warm_up: 0,
        }
    }

    /// The best over everything that a cache could keep after each request.
    fn by_force(trace: &Trace) -> u64 {
        let mut best = HashMap::from([(0u32, 0u64)]);
        for (at, request) in trace.requests.iter().enumerate() {
            let mut after: HashMap<u32, u64> = HashMap::new();
            for (&held, &hits) in &best {
                let is_hit = held >> request.key & 1 == 1 && request.operation != Operation::Write;
                let hits = hits + u64::from(is_hit && at >= trace.warm_up);
                let offered = held | 1 << request.key;
                for kept in 0..1 << KEYS {
                    let weight: u64 = (0..KEYS)
                        .filter(|key| kept >> key & 1 == 1)
                        .map(|key| u64::from(trace.items[key as usize].weight))
                        .sum();
                    if kept & !offered == 0 && weight <= trace.capacity {
                        let known = after.entry(kept).or_default();
                        *known = hits.max(*known);
                    }
                }
            }
            best = after;
        }
        best.into_values().max().unwrap()
    }

    #[test]
    fn belady_is_the_best_of_all_choices() {
        for seed in 0..300 {
            let trace = tiny(&mut SmallRng::seed_from_u64(seed), false);
            let found = belady(&trace, &next_reads(&trace));
            assert_eq!(found, by_force(&trace), "seed {seed}: {trace:?}");
        }
    }

    #[test]
    fn the_bound_for_sizes_is_above_the_best_of_all_choices() {
        let mut tight = 0;
        for seed in 0..300 {
            let mut trace = tiny(&mut SmallRng::seed_from_u64(seed), true);
            trace.warm_up = seed as usize % 6;
            let (bound, best) = (cheapest(&trace, &next_reads(&trace)), by_force(&trace));
            assert!(bound >= best, "seed {seed}: {bound} < {best}, {trace:?}");
            tight += u32::from(bound == best);
        }
        assert!(tight > 10, "it is tight {tight} times");
    }

    #[test]
    fn what_expires_before_it_is_read_takes_no_room() {
        let mut trace = tiny(&mut SmallRng::seed_from_u64(1), false);
        let fetch = |key| Request {
            key,
            operation: Operation::Fetch,
        };
        (trace.capacity, trace.warm_up) = (1, 0);
        trace.requests = [0, 1, 0, 1].map(fetch).into();
        assert_eq!(optimum(&trace), 0.25);
        trace.items[0].lifetime = 2;
        trace.items[1].lifetime = 2;
        assert_eq!(optimum(&trace), 0.0);
        trace.items[1].lifetime = 3;
        assert_eq!(optimum(&trace), 0.25);
    }
}

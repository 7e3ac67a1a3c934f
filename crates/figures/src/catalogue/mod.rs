//! All figures, one file each.

mod accel_bursts;
mod accel_fig12;
mod accel_fig14;
mod accel_keys;
mod accel_policies;
mod accel_stages;
mod coordinated_omission;
mod eviction;
mod formica;
mod formica_fragmentation;
mod formica_misses;
mod hit_ratio;
mod longest_request;
mod memc3_fig4;
mod memc3_fig5;
mod memc3_fig6;
mod memc3_fig8;
mod memc3_fig9;
mod memc3_index;
mod memc3_inserts;
mod memc3_items;
mod memc3_reads;
mod memc3_retries;
mod memc3_shards;
mod memc3_table2;
mod memc3_table3;
mod mica_batches;
mod mica_caches;
mod mica_crew;
mod mica_directed;
mod mica_fig10;
mod mica_fig11;
mod mica_fig12;
mod mica_fig13;
mod mica_fig14;
mod mica_fig15;
mod mica_fig16;
mod mica_flows;
mod mica_heap;
mod mica_heaps;
mod mica_index;
mod mica_masstree;
mod mica_memc3;
mod mica_packets;
mod mica_partitions;
mod mica_prefetch;
mod mica_reference;
mod mica_shards;
mod mica_skew;
mod mica_table1;
mod mica_tcp;
mod mica_transports;
mod minos_contention;
mod minos_designs;
mod minos_fig1;
mod minos_fig10;
mod minos_fig2;
mod minos_fig3;
mod minos_fig4;
mod minos_fig5;
mod minos_fig8;
mod minos_fig9;
mod minos_gains;
mod minos_ideal;
mod minos_live;
mod minos_locality;
mod minos_plans;
mod minos_slices;
mod minos_validation;
mod minos_whole;
mod native_latency;
mod tables;

use crate::Figure;

/// One page with the figures of a paper.
pub struct Page {
    /// Name of the file, without its extension.
    pub name: &'static str,
    /// Title of the page.
    pub title: &'static str,
    /// A description of the paper and its figures.
    pub about: &'static str,
    /// The figures, in the order of the page.
    pub figures: Vec<&'static dyn Figure>,
}

/// All pages, in the order of the index.
pub fn pages() -> Vec<Page> {
    vec![
        Page {
            name: "mica",
            title: "MICA",
            about: "Lim, Han, Andersen and Kaminsky: [MICA: A Holistic Approach to Fast In-Memory \
                    Key-Value Storage](https://www.usenix.org/conference/nsdi14/\
                    technical-sessions/presentation/lim), \
                    NSDI 2014. Glimmer's default table, its access modes and its native protocol \
                    follow this paper.",
            figures: vec![
                &mica_skew::PartitionSkew,
                &mica_fig10::EndToEnd,
                &mica_memc3::Rival,
                &mica_transports::Carriers,
                &mica_tcp::Tcp,
                &mica_flows::Flows,
                &mica_fig11::Bursts,
                &mica_partitions::Partitions,
                &mica_caches::Caches,
                &mica_prefetch::Prefetch,
                &mica_fig12::Local,
                &mica_reference::Reference,
                &mica_index::BulkChaining,
                &mica_heap::Occupancy,
                &mica_fig13::Latency,
                &native_latency::NativeLatency,
                &mica_batches::Batches,
                &mica_packets::Packets,
                &mica_fig14::Cores,
                &mica_directed::Directed,
                &mica_fig15::Ports,
                &mica_fig16::AccessModes,
                &mica_masstree::Masstree,
                &mica_shards::Shards,
                &mica_table1::Direction,
                &eviction::HitRatio,
                &mica_crew::CrewSampling,
            ],
        },
        Page {
            name: "memc3",
            title: "MemC3",
            about: "Fan, Andersen and Kaminsky: [MemC3: Compact and Concurrent MemCache with \
                    Dumber Caching and Smarter \
                    Hashing](https://www.usenix.org/conference/nsdi13/technical-sessions/\
                    presentation/fan), \
                    NSDI 2013. `--table memc3` follows this paper.",
            figures: vec![
                &memc3_items::Items,
                &memc3_index::IndexSize,
                &memc3_table2::Construction,
                &memc3_reads::Lookups,
                &memc3_retries::FalseRetries,
                &memc3_fig4::InsertCost,
                &memc3_fig5::Factors,
                &memc3_fig6::Threads,
                &memc3_inserts::Inserts,
                &memc3_table3::MissRatio,
                &memc3_fig8::Throughput,
                &memc3_fig9::FullSystem,
                &memc3_shards::Sharding,
            ],
        },
        Page {
            name: "minos",
            title: "Minos",
            about: "Didona and Zwaenepoel: [Size-Aware Sharding for Improving Tail Latencies in \
                    In-Memory Key-Value Stores](https://www.usenix.org/conference/nsdi19/\
                    presentation/didona), \
                    NSDI 2019. `--dispatch size-aware` follows this paper, and the other policies \
                    are its baselines. Figures 2 to 10 are simulated: the policy code of the \
                    server runs in virtual time, at 8 cores and 16, and every step is charged what \
                    [`glimmer bench calibrate`](../benchmarking-reference.md#bench-calibrate) has \
                    measured. `minos-live` measures a live server of 8 workers, on a machine with \
                    twice as many cores, `minos-whole` a live one of one or two, and \
                    `minos-validation` has the simulated server beside a live one of one worker.",
            figures: vec![
                &minos_fig1::ServiceTime,
                &minos_fig2::SizeUnaware,
                &minos_fig3::DefaultWorkload,
                &minos_plans::Plans,
                &minos_ideal::Ideal,
                &minos_slices::Slices,
                &minos_whole::Whole,
                &minos_fig4::LargeRequests,
                &minos_contention::Contention,
                &minos_locality::Locality,
                &minos_designs::Designs,
                &minos_fig5::Writes,
                &minos_gains::BY_SHARE,
                &minos_gains::BY_SIZE,
                &minos_fig8::Bandwidth,
                &minos_fig9::Balance,
                &minos_fig10::Changing,
                &minos_live::Live,
                &minos_validation::Validation,
            ],
        },
        Page {
            name: "accel",
            title: "The hot-key accelerator",
            about: "Mao, Karandikar, Ou and Basu: Hardware Acceleration of Key-Value Stores. They \
                    put a cache of the hottest items between the network card and memcached. \
                    Glimmer's [accelerator](../accelerator.md) follows this paper: as a model \
                    inside the server, as a packet program at the driver, and in `accel/` as the \
                    circuit. The paper says of two of its five distributions of keys that they \
                    gain nothing, and these figures show what a miss costs.",
            figures: vec![
                &accel_fig12::Resources,
                &accel_stages::Stages,
                &accel_fig14::OneKey,
                &accel_keys::UNIFORM,
                &accel_keys::NORMAL,
                &accel_keys::PARETO,
                &accel_keys::ETC,
                &accel_policies::Policies,
                &accel_bursts::Changes,
            ],
        },
        Page {
            name: "formica",
            title: "The Formica review",
            about: "A reader's review of MICA, with measurements of a reimplementation named \
                    Formica. It compares MICA's structures with plain ones.",
            figures: vec![
                &formica::PlainTables,
                &formica_misses::Misses,
                &formica_fragmentation::Fragmentation,
            ],
        },
        Page {
            name: "glimmer",
            title: "Glimmer's own claims",
            about: "These figures belong to no paper. They hold this project against bounds of \
                    its own, and show why it measures latency as it does.",
            figures: vec![
                &tables::Tables,
                &hit_ratio::Suite,
                &longest_request::LongestRequest,
                &coordinated_omission::CoordinatedOmission,
            ],
        },
    ]
}

/// All figures, in the order of the pages.
pub fn all() -> Vec<&'static dyn Figure> {
    pages().into_iter().flat_map(|page| page.figures).collect()
}

/// The figure of this name.
pub fn find(name: &str) -> Option<&'static dyn Figure> {
    all().into_iter().find(|figure| figure.spec().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_a_command_line() {
        let mut names: Vec<_> = all().iter().map(|figure| figure.spec().name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        let fits = |name: &&str| {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            name.chars().all(plain) && !["list", "all"].contains(name)
        };
        assert!(names.iter().all(fits), "{names:?}");
        assert!(names.iter().all(|name| find(name).is_some()));
        assert!(find("mica-fig0").is_none());
    }
}

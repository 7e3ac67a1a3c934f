//! Every figure, a file each.

mod coordinated_omission;
mod eviction;
mod formica;
mod longest_request;
mod memc3_fig4;
mod memc3_fig5;
mod memc3_fig6;
mod memc3_fig8;
mod memc3_fig9;
mod memc3_table2;
mod memc3_table3;
mod mica_fig10;
mod mica_fig11;
mod mica_fig12;
mod mica_fig13;
mod mica_fig14;
mod mica_fig16;
mod mica_index;
mod mica_skew;
mod mica_table1;
mod native_latency;
mod tables;

use crate::Figure;

/// All figures, in the order of the page.
pub fn all() -> Vec<&'static dyn Figure> {
    vec![
        &mica_skew::PartitionSkew,
        &mica_fig10::EndToEnd,
        &mica_fig11::Bursts,
        &mica_fig12::Local,
        &mica_index::BulkChaining,
        &mica_fig13::Latency,
        &native_latency::NativeLatency,
        &mica_fig14::Cores,
        &mica_fig16::AccessModes,
        &mica_table1::Direction,
        &memc3_table2::Construction,
        &memc3_fig4::InsertCost,
        &memc3_fig5::Factors,
        &memc3_fig6::Threads,
        &memc3_table3::MissRatio,
        &memc3_fig8::Throughput,
        &memc3_fig9::FullSystem,
        &formica::PlainTables,
        &tables::Tables,
        &longest_request::LongestRequest,
        &eviction::HitRatio,
        &coordinated_omission::CoordinatedOmission,
    ]
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

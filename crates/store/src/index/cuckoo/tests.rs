use super::line::matching;
use super::search::View;
use super::*;
use crate::memory::PagePolicy;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::HashMap;

#[test]
fn each_bucket_is_the_others_alternate() {
    for buckets in [6, 12, 3072, 1 << 20] {
        for bucket in (0..buckets).step_by((buckets as usize / 101).max(1)) {
            for tag in 1..=255 {
                let other = alternate(bucket, tag, buckets);
                assert!(other < buckets && other != bucket);
                assert_eq!(alternate(other, tag, buckets), bucket);
            }
        }
    }
}

/// Fills one segment with random keys until one finds no place.
fn load_at_first_failure(page_words: usize, search: &mut impl Search, seed: u64) -> f64 {
    let pool = Pool::new(1, page_words, PagePolicy::Small, None).unwrap();
    let segment = Segment::at(&pool, 0, buckets_in(page_words));
    let slots = buckets_in(page_words) as usize * BUCKET_SLOTS;
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut path, mut model) = (Vec::new(), HashMap::new());
    for n in 0..slots {
        let keyhash = Keyhash(rng.random());
        let (homes, tag) = spread(keyhash, buckets_in(page_words));
        let empty = segment
            .empty(homes)
            .or_else(|| segment.make_empty(homes, search, &mut path, true));
        let Some(at) = empty else { break };
        let line = line_at(&pool, at.line);
        assert_eq!(
            (matching(u64::from(line.tags(at.bucket)), 0) >> (8 * at.place + 7)) & 1,
            1
        );
        line.set(at.bucket, at.place, tag, Slot::new(n));
        model.insert(n, keyhash);
    }
    // Whatever was moved is in one of its buckets, and nothing is in the table twice.
    for (&n, &keyhash) in &model {
        let (homes, tag) = spread(keyhash, buckets_in(page_words));
        let found = segment.candidates(homes, tag);
        assert_eq!(found.filter(|(_, slot)| slot.offset() == n).count(), 1);
    }
    let occupied = (0..buckets_in(page_words))
        .map(|bucket| {
            BUCKET_SLOTS as u32
                - matching(u64::from(segment.tags(bucket)) | 0xFFFF_FFFF << 32, 0).count_ones()
        })
        .sum::<u32>();
    assert_eq!(occupied as usize, model.len());
    model.len() as f64 / slots as f64
}

#[test]
fn a_segment_is_95_percent_full_before_it_has_no_place() {
    for seed in 0..20 {
        let load = load_at_first_failure(8192, &mut Breadth::default(), seed);
        assert!(load >= 0.95, "seed {seed}: {load}");
    }
}

#[test]
fn the_papers_search_fills_a_table_as_far_as_the_paper_says() {
    // Table 2: 94.79%, 94.93% and 95.20% with one, two and three paths, of a far larger table.
    for paths in 1..=3 {
        let loads =
            (0..10).map(|seed| load_at_first_failure(1 << 17, &mut Walks::new(paths), seed));
        let mean = loads.sum::<f64>() / 10.0;
        assert!((0.93..0.98).contains(&mean), "{paths} paths: {mean}");
    }
}

#[test]
fn an_index_takes_less_than_six_bytes_for_a_key_at_95_percent() {
    let slots = buckets_in(8192) as usize * BUCKET_SLOTS;
    assert!((8192 * 8) as f64 / (0.95 * slots as f64) < 6.0);
}

#[test]
fn points_are_in_the_order_of_the_bits_and_twice_as_dense_at_the_end() {
    let point_of = |bits: u64| point(Keyhash(bits << 16));
    let step = (1u64 << 32) / 1_000;
    let places: Vec<u64> = (0..=1_000)
        .map(|n| point_of((n * step).min((1 << 32) - 1)))
        .collect();
    assert!(places.is_sorted() && places[0] == 0 && places[1_000] < 1 << 32);
    let (first, last) = (places[1] - places[0], places[1_000] - places[999]);
    let ratio = first as f64 / last as f64;
    assert!((1.98..2.01).contains(&ratio), "{ratio}");
    // The bits of partition and tag have no part in it.
    assert_eq!(point(Keyhash(!0)), point(Keyhash(!0 >> 16 & !0xFFFF)));
}

/// Segments that split when they are 95% full, with keys spread as evenly as can be.
#[test]
fn an_index_of_many_segments_takes_less_than_nine_bytes_for_a_key_at_any_time() {
    let full = 0.95 * 12_288.0;
    // What share of the keys lies before a place: the curve's inverse.
    let before = |place: f64| 2.0 - (4.0 - 3.0 * place).sqrt();
    let mut segments = vec![(0.0, 1.0)];
    let mut keys = 1_000.0;
    while keys < 3e6 {
        keys *= 1.001;
        segments = segments
            .iter()
            .flat_map(
                |&(from, to)| match (before(to) - before(from)) * keys > full {
                    true => vec![(from, (from + to) / 2.0), ((from + to) / 2.0, to)],
                    false => vec![(from, to)],
                },
            )
            .collect();
        let per_key = segments.len() as f64 * 65_536.0 / keys;
        if segments.len() > 2 {
            assert!(per_key < 10.0, "{per_key} with {}", segments.len());
        }
        if segments.len() > 12 {
            assert!(
                (7.5..9.0).contains(&per_key),
                "{per_key} with {}",
                segments.len()
            );
        }
    }
}

#[test]
fn prefixes_are_handed_out_in_runs() {
    let directory = Directory::new(4, 99, 8192);
    let home = |bits: u64| directory.home(Keyhash(bits << 44));
    let run = |entry| directory.segment_of(entry).unwrap().1;
    assert_eq!(run(5), 0..16);
    directory.assign(8..16, 98);
    assert_eq!(run(5), 0..8);
    assert_eq!(run(9), 8..16);
    directory.assign(12..16, 97);
    directory.assign(10..12, 96);
    assert_eq!(run(9), 8..10);
    assert_eq!(run(10), 10..12);
    assert_eq!(run(15), 12..16);
    let before = home(15);
    assert!(directory.unchanged(&before));
    directory.assign_all(99);
    assert!(!directory.unchanged(&before));
    assert_eq!(run(15), 0..16);
}

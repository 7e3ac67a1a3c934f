use super::*;
use crate::memory::PagePolicy;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::HashMap;

/// Takes and frees chunks of random classes, and checks that no two chunks in use overlap and that
/// what is free adds up.
#[test]
fn chunks_never_overlap_and_pages_come_back() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let (pages, page_words) = (64, 64);
    let pool = Pool::new(pages, page_words, PagePolicy::Small, None).unwrap();
    let mut slabs = Slabs::new(&pool, pages, 200);
    // Word at which each chunk in use begins, and how many words its item has.
    let mut used: Vec<(usize, usize)> = Vec::new();
    let mut refused = 0;
    for _ in 0..if cfg!(miri) { 100 } else { 50_000 } {
        if rng.random_bool(0.52) {
            let words = *[2, 3, 7, 8, 20, 64, 70, 200]
                .get(rng.random_range(0..8))
                .unwrap();
            let class = slabs.class_of(words);
            let at = slabs.take(&pool, class).or_else(|| {
                slabs.add_slab(class);
                slabs.take(&pool, class)
            });
            let Some(at) = at else {
                refused += 1;
                continue;
            };
            assert_eq!(slabs.class_at(&pool, at), class);
            assert!(at + words <= pages * page_words);
            // An item's header, as far as slabs know one.
            pool.place(at, 2)
                .word(0)
                .store(1 << 8, glimmer_base::sync::Ordering::Relaxed);
            used.push((at, words));
        } else if !used.is_empty() {
            let (at, _) = used.swap_remove(rng.random_range(0..used.len()));
            slabs.free(&pool, at);
        }
        if rng.random_bool(0.01) {
            used.sort_unstable();
            assert!(
                used.windows(2)
                    .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
            );
            let slabs_used: HashMap<usize, usize> =
                used.iter()
                    .fold(HashMap::new(), |mut slabs_used, &(at, _)| {
                        *slabs_used.entry(slabs.slab_of(&pool, at)).or_default() += 1;
                        slabs_used
                    });
            for (slab, count) in slabs_used {
                assert_eq!(slabs.pages[slab].used as usize, count);
            }
        }
    }
    assert!(refused > 0 || cfg!(miri), "memory was meant to run out");
    for (at, _) in used.drain(..) {
        slabs.free(&pool, at);
    }
    // One slab with free chunks stays with each class.
    let kept: usize = slabs
        .classes
        .iter()
        .map(|class| class.slabs.len() * class.size.pages)
        .sum();
    assert!(slabs.classes.iter().all(|class| class.slabs.len() <= 1));
    assert_eq!(slabs.free_pages.count(), pages - kept);
}

#[test]
fn a_released_slab_leaves_its_class_in_order() {
    let pool = Pool::new(8, 64, PagePolicy::Small, None).unwrap();
    let mut slabs = Slabs::new(&pool, 8, 32);
    let class = slabs.class_of(32);
    while slabs.add_slab(class) {}
    while slabs.take(&pool, class).is_some() {}
    assert_eq!(slabs.age(class), Some((512, 0)));
    slabs.advance_hand(class);
    slabs.advance_hand(class);
    assert_eq!(slabs.age(class).unwrap().1, 1);
    slabs.release(1);
    assert_eq!(slabs.classes[class as usize].slabs, [0, 7, 2, 3, 4, 5, 6]);
    assert_eq!(slabs.pages[7].position, 1);
    assert_eq!(slabs.age(class).unwrap().1, 7);
    assert!(slabs.add_slab(class));
    assert_eq!(slabs.take(&pool, class).map(|at| pool.page_of(at)), Some(1));
    assert!(!slabs.add_slab(class));
}

#[test]
fn the_index_takes_pages_from_the_end() {
    let pool = Pool::new(8, 64, PagePolicy::Small, None).unwrap();
    let mut slabs = Slabs::new(&pool, 8, 32);
    assert_eq!((slabs.give_last_page(), slabs.give_last_page()), (7, 6));
    let class = slabs.class_of(32);
    let added = std::iter::repeat_with(|| slabs.add_slab(class))
        .take_while(|&added| added)
        .count();
    assert_eq!((added, slabs.item_pages()), (6, 6));
    slabs.clear_but(&pool, &[]);
    assert_eq!(slabs.free_pages.count(), 6);
}

/// Low pages come back again and again while all others are in use: what is done to give and to
/// take a slab does not grow with the number of slabs.
#[test]
fn giving_and_taking_slabs_costs_the_same_whatever_their_number() {
    let steps = [64, 64 << 8].map(|pages| {
        let pool = Pool::new(pages, 64, PagePolicy::Small, None).unwrap();
        let mut slabs = Slabs::new(&pool, pages, 64);
        let class = slabs.class_of(32);
        while slabs.add_slab(class) {
            slabs.take(&pool, class);
        }
        let mut most = 0;
        for low in 0..pages / 2 {
            crate::work::take();
            slabs.release(low);
            assert!(slabs.add_slab(class));
            most = most.max(crate::work::take().page_steps);
            // Another one comes back too, so that there is always one before the end.
            slabs.release(pages - 1 - low);
        }
        most
    });
    // A word of bits has 64 pages: the second pool has 256 of them.
    assert!(steps[1] <= steps[0] + 256, "{steps:?}");
    assert!(steps[0] <= 8, "{steps:?}");
}

/// Pages of which every fourth is pinned: the best place for a large slab has few of them.
#[test]
fn the_pages_with_the_fewest_reserved_chunks_are_found() {
    let pool = Pool::new(64, 64, PagePolicy::Small, None).unwrap();
    let mut slabs = Slabs::new(&pool, 64, 640);
    let (small, large) = (slabs.class_of(32), slabs.class_of(640));
    while slabs.add_slab(small) {}
    let mut chunks: Vec<usize> = std::iter::from_fn(|| slabs.take(&pool, small)).collect();
    chunks.sort_unstable();
    let pinned: Vec<usize> = (0..64).step_by(4).chain([33, 34]).collect();
    for &page in &pinned {
        slabs.reserve(&pool, chunks[2 * page]);
    }
    assert_eq!(slabs.pinned_pages(), pinned.len());
    assert_eq!(slabs.unpinned_run(3, 64), Some(1..4));
    assert_eq!(slabs.unpinned_run(4, 64), None);
    assert!(slabs.is_pinned_within(5..9) && !slabs.is_pinned_within(5..8));
    let pages = slabs.least_pinned(10).unwrap();
    assert_eq!((pages, slabs.slab_pages(large)), (3..16, 10));
}

/// A flush leaves what is reserved where it is, and all else is free.
#[test]
fn what_is_reserved_stays_when_all_else_is_cleared() {
    let pool = Pool::new(8, 64, PagePolicy::Small, None).unwrap();
    let mut slabs = Slabs::new(&pool, 8, 160);
    let (small, large) = (slabs.class_of(16), slabs.class_of(160));
    let take = |slabs: &mut Slabs, class| {
        slabs.take(&pool, class).or_else(|| {
            assert!(slabs.add_slab(class));
            slabs.take(&pool, class)
        })
    };
    let mut chunks: Vec<usize> = (0..8).filter_map(|_| take(&mut slabs, small)).collect();
    let value = take(&mut slabs, large).unwrap();
    let kept = [chunks[2], chunks[5], value];
    for at in kept {
        slabs.reserve(&pool, at);
    }
    slabs.clear_but(&pool, &kept);
    assert_eq!((slabs.pinned_pages(), slabs.free_pages.count()), (5, 3));
    assert!(!slabs.has_items(large) && slabs.reserved_in(0) == 1);
    // The free chunks of the two slabs are those that were not kept.
    let again: Vec<usize> = std::iter::from_fn(|| slabs.take(&pool, small)).collect();
    chunks.retain(|at| !kept.contains(at));
    let mut sorted = again.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, chunks);
    for at in again {
        slabs.free(&pool, at);
    }
    for at in kept {
        slabs.end_reservation(&pool, at);
        slabs.free(&pool, at);
    }
    assert_eq!(slabs.pinned_pages(), 0);
}

//! Which pages are free: a bit for each, so that a run of free pages is found 64 pages at a time.

use crate::work;

/// Pages in one word of bits.
const WORD_PAGES: usize = u64::BITS as usize;

/// The free pages of a pool.
pub(super) struct FreePages {
    /// The bit of page `n` is bit `n % 64` of word `n / 64`.
    words: Vec<u64>,
    count: usize,
    /// No word before this one has a free page.
    first: usize,
}

impl FreePages {
    /// For `pages` pages, of which the first `free` are free.
    pub fn new(pages: usize, free: usize) -> FreePages {
        let mut all = FreePages {
            words: vec![0; pages.div_ceil(WORD_PAGES)],
            count: 0,
            first: 0,
        };
        all.give(0, free);
        all
    }

    /// Number of free pages.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first page of the lowest run of `wanted` free pages.
    pub fn run(&self, wanted: usize) -> Option<usize> {
        if self.count < wanted {
            return None;
        }
        let mut run = 0;
        for (number, &word) in self.words.iter().enumerate().skip(self.first) {
            work::page_step();
            if word == u64::MAX && run + WORD_PAGES < wanted {
                run += WORD_PAGES;
                continue;
            }
            let mut at = 0;
            while at < WORD_PAGES {
                let rest = word >> at;
                let free = (rest.trailing_ones() as usize).min(WORD_PAGES - at);
                if run + free >= wanted {
                    return Some(number * WORD_PAGES + at - run);
                }
                at += free;
                if at == WORD_PAGES {
                    run += free;
                    break;
                }
                run = 0;
                // Past the pages in use.
                at += (word >> at).trailing_zeros() as usize;
            }
        }
        None
    }

    /// Takes free pages.
    pub fn take(&mut self, first: usize, count: usize) {
        self.each(first, count, |word, bits| {
            debug_assert!(*word & bits == bits, "the pages are free");
            *word &= !bits;
        });
        self.count -= count;
        while self.words.get(self.first) == Some(&0) {
            work::page_step();
            self.first += 1;
        }
    }

    /// Gives back pages that are free now.
    pub fn give(&mut self, first: usize, count: usize) {
        self.each(first, count, |word, bits| {
            debug_assert!(*word & bits == 0, "the pages are in use");
            *word |= bits;
        });
        self.count += count;
        self.first = self.first.min(first / WORD_PAGES);
    }

    /// Shows every word that has bits of these pages, and which bits.
    fn each(&mut self, first: usize, count: usize, mut change: impl FnMut(&mut u64, u64)) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let bit = at % WORD_PAGES;
            let here = (WORD_PAGES - bit).min(end - at);
            let bits = (u64::MAX >> (WORD_PAGES - here)) << bit;
            change(&mut self.words[at / WORD_PAGES], bits);
            at += here;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn the_lowest_run_is_found_as_page_by_page() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        for pages in [1, 63, 64, 65, 128, 300] {
            let free = rng.random_range(0..=pages);
            let mut all = FreePages::new(pages, free);
            let mut model: Vec<bool> = (0..pages).map(|page| page < free).collect();
            for _ in 0..3_000 {
                let wanted = match rng.random_bool(0.8) {
                    true => rng.random_range(1..5),
                    false => rng.random_range(1..=pages),
                };
                let run = (0..pages).find(|&first| {
                    let mut run = model[first..].iter().take(wanted);
                    first + wanted <= pages && run.all(|&is_free| is_free)
                });
                assert_eq!(all.run(wanted), run);
                if let Some(first) = run
                    && rng.random_bool(0.6)
                {
                    all.take(first, wanted);
                    model[first..first + wanted].fill(false);
                }
                let page = rng.random_range(0..pages);
                if !model[page] {
                    all.give(page, 1);
                    model[page] = true;
                } else if rng.random_bool(0.7) {
                    all.take(page, 1);
                    model[page] = false;
                }
                assert_eq!(
                    all.count(),
                    model.iter().filter(|&&is_free| is_free).count()
                );
            }
        }
    }
}

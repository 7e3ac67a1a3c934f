//! Size classes: chunks of how many words there are, and how a slab is cut into them.
//!
//! Small chunks grow in steps of a word, then by an eighth, so that rounding up to the next class
//! costs an item 12.5% at most and half of that on average. From an eighth of a page on, chunks
//! divide the page evenly; above a page, a slab is a run of pages and holds one chunk.

/// One size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Words of a chunk.
    pub chunk_words: usize,
    /// Chunks of a slab.
    pub chunks: usize,
    /// Pages of a slab.
    pub pages: usize,
}

/// Smallest chunk in words: a header and a key.
const CHUNK_WORDS_MIN: usize = 2;
/// Each class is larger than the one before it by this part, at least.
const GROWTH: usize = 8;

/// The sizes for items of up to `item_words_max` words, smallest first.
pub fn sizes(page_words: usize, item_words_max: usize) -> Vec<Size> {
    let in_page = |chunk_words: usize| Size {
        chunk_words,
        chunks: page_words / chunk_words,
        pages: 1,
    };
    let mut sizes = Vec::new();
    let mut words = CHUNK_WORDS_MIN;
    while words < page_words / GROWTH {
        sizes.push(in_page(words));
        words += (words / GROWTH).max(1);
    }
    for parts in (1..=GROWTH).rev() {
        let chunk_words = page_words / parts;
        if sizes
            .last()
            .is_none_or(|last| last.chunk_words < chunk_words)
        {
            sizes.push(in_page(chunk_words));
        }
    }
    let mut pages = 2;
    while sizes
        .last()
        .is_none_or(|last| last.chunk_words < item_words_max)
    {
        sizes.push(Size {
            chunk_words: pages * page_words,
            chunks: 1,
            pages,
        });
        pages += (pages / GROWTH).max(1);
    }
    let enough = sizes.partition_point(|size| size.chunk_words < item_words_max) + 1;
    sizes.truncate(enough);
    // The largest need not be larger than the largest item.
    if let Some(last) = sizes.last_mut()
        && last.pages > 1
    {
        last.pages = item_words_max.div_ceil(page_words);
        last.chunk_words = last.pages * page_words;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_a_class_and_little_is_lost_to_rounding() {
        for (page_words, item_words_max) in
            [(8192, 131_072), (8192, 100), (16, 6), (16, 40), (64, 64)]
        {
            let sizes = sizes(page_words, item_words_max);
            assert!(sizes.len() < 200);
            assert!(
                sizes
                    .windows(2)
                    .all(|pair| pair[0].chunk_words < pair[1].chunk_words)
            );
            for words in 2..=item_words_max {
                let size = sizes[sizes.partition_point(|size| size.chunk_words < words)];
                assert!(size.chunk_words >= words);
                assert!(size.chunks * size.chunk_words <= size.pages * page_words);
                if words < page_words / GROWTH {
                    assert!(size.chunk_words <= (words + words / GROWTH).max(words + 1));
                    let waste = page_words - size.chunks * size.chunk_words;
                    assert!(waste < page_words / GROWTH);
                }
            }
        }
    }

    #[test]
    fn an_item_of_16_and_32_bytes_has_a_class_of_its_own() {
        assert!(sizes(8192, 8192).iter().any(|size| size.chunk_words == 7));
    }
}

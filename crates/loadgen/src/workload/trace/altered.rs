//! How a replay may differ from the recording, so that a small trace without lengths exercises a
//! whole server, and what a trace asks for in all.

use std::collections::HashMap;

use anyhow::Result;
use glimmer_base::Seed;
use serde::Serialize;

use super::{Record, Records};
use crate::workload::Verb;

/// How a replay differs from the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Altered {
    /// Recorded requests after which it ends.
    pub requests_max: Option<u64>,
    /// Length in bytes of every value, instead of the recorded ones.
    pub value_bytes: Option<u32>,
    /// Each request is made this many times in a row, each time for a key of its own. So the trace
    /// has as many times more keys, each requested as often as recorded, and a rule that only looks
    /// at the order of requests finds the same share of them in a cache as many times larger.
    pub copies: u32,
    /// Reads that were recorded without a length have that of their key: the last one before, or
    /// the first one after. Twitter's traces record reads that missed in this way. To know the
    /// lengths, the trace is read once more.
    pub completes_lengths: bool,
}

impl Default for Altered {
    /// As recorded.
    fn default() -> Altered {
        Altered {
            requests_max: None,
            value_bytes: None,
            copies: 1,
            completes_lengths: false,
        }
    }
}

impl Altered {
    /// The records that `open` opens, altered.
    pub fn apply(self, open: impl Fn() -> Result<Records>) -> Result<Records> {
        let records = match self.completes_lengths {
            true => Box::new(completed(first_lengths(self.cut(open()?))?, open()?)),
            false => open()?,
        };
        if self == Altered::default() {
            return Ok(records);
        }
        let altered = self.cut(records).flat_map(move |record| {
            let copies = match record {
                Ok(_) => self.copies,
                Err(_) => 1,
            };
            let mut record = Some(record);
            let first = record
                .as_ref()
                .and_then(|record| record.as_ref().ok().copied());
            (0..copies).filter_map(move |copy| match first {
                Some(first) => Some(Ok(self.copy(first, copy))),
                None => record.take(),
            })
        });
        Ok(Box::new(altered))
    }

    /// The records of the replay.
    fn cut(self, records: Records) -> Records {
        let requests_max = self
            .requests_max
            .map_or(usize::MAX, |requests| requests as usize);
        Box::new(records.take(requests_max))
    }

    fn copy(self, record: Record, copy: u32) -> Record {
        Record {
            number: match copy {
                0 => record.number,
                _ => {
                    Seed(u64::from(copy))
                        .keyhash(&record.number.to_le_bytes())
                        .0
                }
            },
            value_bytes: self.value_bytes.unwrap_or(record.value_bytes),
            ..record
        }
    }
}

/// The first length of each key that is not zero.
fn first_lengths(records: Records) -> Result<HashMap<u64, u32>> {
    let mut lengths = HashMap::new();
    for record in records {
        let record = record?;
        if record.value_bytes > 0 {
            lengths.entry(record.number).or_insert(record.value_bytes);
        }
    }
    Ok(lengths)
}

/// The records, in which a read without a length has the length of its key. `lengths` has the first
/// of each key, and then the last before the read.
fn completed(
    mut lengths: HashMap<u64, u32>,
    records: Records,
) -> impl Iterator<Item = Result<Record>> {
    records.map(move |record| {
        let mut record = record?;
        match (record.verb, record.value_bytes) {
            (Verb::Get, 0) => {
                record.value_bytes = lengths.get(&record.number).copied().unwrap_or(0);
            }
            (_, 0) => {}
            (_, bytes) => {
                lengths.insert(record.number, bytes);
            }
        }
        Ok(record)
    })
}

/// What a trace asks for in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Requests.
    pub requests: u64,
    /// Different keys.
    pub keys: u64,
    /// Bytes of these keys and of their last values that are not empty: deletes, and reads that
    /// missed, are recorded without a length.
    pub bytes: u64,
}

impl Footprint {
    /// Reads all records.
    pub fn of(records: Records) -> Result<Footprint> {
        let mut items: HashMap<u64, u64> = HashMap::new();
        let mut requests = 0;
        for record in records {
            let record = record?;
            requests += 1;
            let bytes = u64::from(record.key_bytes) + u64::from(record.value_bytes);
            let known = items.entry(record.number).or_insert(bytes);
            if record.value_bytes > 0 {
                *known = bytes;
            }
        }
        Ok(Footprint {
            requests,
            keys: items.len() as u64,
            bytes: items.values().sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::trace::{keys, twitter};

    fn records(text: &'static str) -> Records {
        Box::new(keys::records(text.as_bytes(), "t".to_owned()))
    }

    fn numbers(altered: Altered) -> Vec<u64> {
        let records = altered.apply(|| Ok(records("5\n6\n5\n7\n"))).unwrap();
        records.map(|record| record.unwrap().number).collect()
    }

    fn footprint(altered: Altered, text: &'static str) -> Result<Footprint> {
        Footprint::of(altered.apply(|| Ok(records(text)))?)
    }

    #[test]
    fn reads_that_missed_have_the_length_of_their_key() {
        // The first key is missed before its first store and between two, and grows. The length of
        // the last key is known only after the replay has ended.
        let text = "0,a,8,0,0,get,0\n\
                    0,a,8,100,0,set,0\n\
                    0,a,8,100,0,get,0\n\
                    1,a,8,0,0,delete,0\n\
                    1,a,8,0,0,get,0\n\
                    1,a,8,300,0,set,0\n\
                    2,a,8,0,0,get,0\n\
                    2,b,8,0,0,get,0\n\
                    2,b,8,70,0,set,0\n";
        let lengths = |altered: Altered| -> Vec<u32> {
            let open = || -> Result<Records> {
                Ok(Box::new(twitter::records(text.as_bytes(), "t".to_owned())))
            };
            let records = altered.apply(open).unwrap();
            records.map(|record| record.unwrap().value_bytes).collect()
        };
        let altered = Altered {
            completes_lengths: true,
            requests_max: Some(8),
            ..Altered::default()
        };
        assert_eq!(lengths(altered), [100, 100, 100, 0, 100, 300, 300, 0]);
        let as_recorded = [0, 100, 100, 0, 0, 300, 0, 0, 70];
        assert_eq!(lengths(Altered::default()), as_recorded);
    }

    #[test]
    fn a_trace_is_cut_and_its_values_have_the_length_that_was_said() {
        assert_eq!(numbers(Altered::default()), [5, 6, 5, 7]);
        let altered = Altered {
            requests_max: Some(3),
            value_bytes: Some(84),
            ..Altered::default()
        };
        assert_eq!(numbers(altered), [5, 6, 5]);
        let footprint = footprint(altered, "5\n6\n5\n7\n").unwrap();
        let expected = Footprint {
            requests: 3,
            keys: 2,
            bytes: 200,
        };
        assert_eq!(footprint, expected);
    }

    #[test]
    fn the_length_of_a_value_is_the_last_one_that_was_recorded() {
        // The first key is deleted, the second missed at last, and the third has no length at all.
        let text = "0,a,8,100,0,set,0\n\
                    0,a,8,200,0,get,0\n\
                    1,a,8,0,0,delete,0\n\
                    1,b,8,50,0,set,0\n\
                    1,b,8,0,0,get,0\n\
                    2,c,8,0,0,get,0\n";
        let records = twitter::records(text.as_bytes(), "t".to_owned());
        let footprint = Footprint::of(Box::new(records)).unwrap();
        assert_eq!((footprint.keys, footprint.bytes), (3, 208 + 58 + 8));
    }

    #[test]
    fn copies_have_keys_of_their_own_and_the_order_of_the_trace() {
        let altered = Altered {
            copies: 3,
            ..Altered::default()
        };
        let all = numbers(altered);
        assert_eq!(all.len(), 12);
        let [five, six, again] = [&all[0..3], &all[3..6], &all[6..9]];
        assert!(five == again && five[0] == 5 && six[0] == 6);
        let footprint = footprint(altered, "5\n6\n5\n7\n").unwrap();
        assert_eq!((footprint.requests, footprint.keys), (12, 9));
    }

    #[test]
    fn a_broken_trace_is_one_error_however_many_copies_it_has() {
        let altered = Altered {
            copies: 3,
            ..Altered::default()
        };
        let broken = altered.apply(|| Ok(records("5\n6 7\n"))).unwrap();
        let all: Vec<bool> = broken.map(|record| record.is_ok()).collect();
        assert_eq!(all, [true, true, true, false]);
        assert!(footprint(altered, "5\n6 7\n").is_err());
    }
}

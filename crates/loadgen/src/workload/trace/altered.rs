//! How a replay may differ from the recording, so that a small trace without lengths exercises a
//! whole server, and what a trace asks for in all.

use std::collections::HashMap;

use anyhow::Result;
use glimmer_base::Seed;
use serde::Serialize;

use super::{Record, Records};

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
}

impl Default for Altered {
    /// As recorded.
    fn default() -> Altered {
        Altered {
            requests_max: None,
            value_bytes: None,
            copies: 1,
        }
    }
}

impl Altered {
    /// The records, altered.
    pub fn apply(self, records: Records) -> Records {
        if self == Altered::default() {
            return records;
        }
        let requests_max = self
            .requests_max
            .map_or(usize::MAX, |requests| requests as usize);
        let altered = records.take(requests_max).flat_map(move |record| {
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
        Box::new(altered)
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
        let records = altered.apply(records("5\n6\n5\n7\n"));
        records.map(|record| record.unwrap().number).collect()
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
        let footprint = Footprint::of(altered.apply(records("5\n6\n5\n7\n"))).unwrap();
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
        let footprint = Footprint::of(altered.apply(records("5\n6\n5\n7\n"))).unwrap();
        assert_eq!((footprint.requests, footprint.keys), (12, 9));
    }

    #[test]
    fn a_broken_trace_is_one_error_however_many_copies_it_has() {
        let altered = Altered {
            copies: 3,
            ..Altered::default()
        };
        let all: Vec<bool> = altered
            .apply(records("5\n6 7\n"))
            .map(|record| record.is_ok())
            .collect();
        assert_eq!(all, [true, true, true, false]);
        assert!(Footprint::of(altered.apply(records("5\n6 7\n"))).is_err());
    }
}

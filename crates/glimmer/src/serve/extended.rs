//! `-o`: memcached's extended options. Each is checked as in memcached, even if its feature does
//! not exist here. An option is one row of [`OPTIONS`].

use super::Refused;
use glimmer_base::limits::ITEM_BYTES_MAX;
use glimmer_server::Config;
use glimmer_server::encryption::{KeyFormat, MinVersion, VerifyMode};
use std::ops::RangeInclusive;

/// The valid values of an option.
enum Value {
    /// No value, or any value, which is ignored.
    None,
    /// An integer within these bounds.
    Whole(RangeInclusive<i64>),
    /// An optional integer within these bounds.
    Optional(RangeInclusive<i64>),
    /// A number greater than the first and at most the second.
    Above(f64, f64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Anything.
    Text,
}

/// The effect of an option.
enum Effect {
    /// It changes the configuration. An option without an integer passes 0.
    Sets(fn(&mut Config, i64)),
    /// The same with its text.
    Takes(fn(&mut Config, &str)),
    /// It asks for something that this server always does.
    Holds,
    /// Its feature does not exist here.
    Nothing(&'static str),
    /// It asks for something that this server cannot do.
    Refuse(&'static str),
}

use Effect::*;

const ANY: RangeInclusive<i64> = 0..=u32::MAX as i64;
const SLABS: &str = "there are no slabs";
const STORAGE: &str = "this server keeps items in memory only";
const SEGMENTS: &str = "there are no LRU segments";
const CRAWLER: &str = "items are listed as fast as the client takes them";
const INDEX: &str = "the index grows and shrinks by itself";
const BUFFERS: &str = "-m bounds the connections' buffers too";
const LOG_BUFFERS: &str = "the buffers of watchers have a fixed size";

/// Every option of memcached 1.6.45 except those of its external storage and its proxy.
const OPTIONS: &[(&str, Value, Effect)] = &[
    (
        "maxconns_fast",
        Value::None,
        Sets(|config, _| config.rejects_beyond_max = true),
    ),
    (
        "no_maxconns_fast",
        Value::None,
        Sets(|config, _| config.rejects_beyond_max = false),
    ),
    (
        "idle_timeout",
        Value::Whole(ANY),
        Sets(|config, seconds| config.idle_timeout = super::unless_0(seconds as u64)),
    ),
    ("modern", Value::None, Holds),
    (
        "no_modern",
        Value::None,
        Sets(|config, _| (config.rejects_beyond_max, config.crawler) = (false, false)),
    ),
    ("hashpower", Value::Whole(12..=32), Nothing(INDEX)),
    ("no_hashexpand", Value::None, Holds),
    (
        "hash_algorithm",
        Value::OneOf(&["jenkins", "murmur3", "xxh3"]),
        Nothing("keys are always hashed with NH, AES-128 and a random secret"),
    ),
    (
        "tail_repair_time",
        Value::Whole(10..=i64::MAX),
        Nothing("no item can block the others"),
    ),
    ("slab_reassign", Value::None, Nothing(SLABS)),
    ("no_slab_reassign", Value::None, Nothing(SLABS)),
    ("slab_automove", Value::Optional(0..=2), Nothing(SLABS)),
    ("no_slab_automove", Value::None, Nothing(SLABS)),
    (
        "slab_automove_ratio",
        Value::Above(0.0, 1.0),
        Nothing(SLABS),
    ),
    (
        "slab_automove_window",
        Value::Whole(3..=1800),
        Nothing(SLABS),
    ),
    ("slab_sizes", Value::Text, Nothing(SLABS)),
    // In kilobytes, or in bytes: memcached has had both units.
    (
        "slab_chunk_max",
        Value::Whole(1..=ITEM_BYTES_MAX as i64),
        Nothing(SLABS),
    ),
    ("no_chunked_items", Value::None, Nothing(SLABS)),
    (
        "lru_crawler",
        Value::None,
        Sets(|config, _| config.crawler = true),
    ),
    (
        "no_lru_crawler",
        Value::None,
        Sets(|config, _| config.crawler = false),
    ),
    (
        "lru_crawler_sleep",
        Value::Whole(0..=1_000_000),
        Nothing(CRAWLER),
    ),
    ("lru_crawler_tocrawl", Value::Whole(ANY), Nothing(CRAWLER)),
    ("lru_maintainer", Value::None, Nothing(SEGMENTS)),
    ("no_lru_maintainer", Value::None, Holds),
    ("hot_lru_pct", Value::Whole(1..=79), Nothing(SEGMENTS)),
    ("warm_lru_pct", Value::Whole(1..=79), Nothing(SEGMENTS)),
    (
        "hot_max_factor",
        Value::Above(0.0, f64::INFINITY),
        Nothing(SEGMENTS),
    ),
    (
        "warm_max_factor",
        Value::Above(0.0, f64::INFINITY),
        Nothing(SEGMENTS),
    ),
    ("temporary_ttl", Value::Whole(ANY), Nothing(SEGMENTS)),
    (
        "watcher_logbuf_size",
        Value::Whole(ANY),
        Nothing(LOG_BUFFERS),
    ),
    (
        "worker_logbuf_size",
        Value::Whole(ANY),
        Nothing(LOG_BUFFERS),
    ),
    (
        "read_buf_mem_limit",
        Value::Whole(ANY),
        Sets(|config, mib| config.buffer_bytes = (mib > 0).then_some((mib as usize) << 20)),
    ),
    ("resp_obj_mem_limit", Value::Text, Nothing(BUFFERS)),
    (
        "track_sizes",
        Value::None,
        Nothing("sizes of items are not counted"),
    ),
    ("inline_ascii_resp", Value::None, Holds),
    ("no_inline_ascii_resp", Value::None, Holds),
    (
        "drop_privileges",
        Value::None,
        Nothing("use -u to give up privileges"),
    ),
    ("no_drop_privileges", Value::None, Holds),
    ("relaxed_privileges", Value::None, Holds),
    (
        "sock_cookie_id",
        Value::Text,
        Nothing("sockets are not marked"),
    ),
    ("ext_page_size", Value::Whole(ANY), Nothing(STORAGE)),
    ("ext_threads", Value::Whole(ANY), Nothing(STORAGE)),
    (
        "slab_automove_freeratio",
        Value::Above(0.0, f64::INFINITY),
        Nothing(SLABS),
    ),
    ("ext_path", Value::Text, Refuse(STORAGE)),
    (
        "proxy_config",
        Value::Text,
        Refuse("the proxy is not supported"),
    ),
    (
        "ssl_chain_cert",
        Value::Text,
        Takes(|config, path| config.tls.chain = Some(path.into())),
    ),
    (
        "ssl_key",
        Value::Text,
        Takes(|config, path| config.tls.key = Some(path.into())),
    ),
    // memcached takes the numbers, and names the words.
    (
        "ssl_keyformat",
        Value::OneOf(&["1", "2", "PEM", "DER"]),
        Takes(|config, format| {
            config.tls.key_format = match format {
                "2" | "DER" => KeyFormat::Der,
                _ => KeyFormat::Pem,
            }
        }),
    ),
    (
        "ssl_verify_mode",
        Value::Whole(0..=3),
        Sets(|config, mode| {
            config.tls.verify = match mode {
                0 => VerifyMode::None,
                1 => VerifyMode::Request,
                2 => VerifyMode::Require,
                _ => VerifyMode::Once,
            }
        }),
    ),
    (
        "ssl_ca_cert",
        Value::Text,
        Takes(|config, path| config.tls.roots = Some(path.into())),
    ),
    (
        "ssl_ciphers",
        Value::Text,
        Takes(|config, names| config.tls.ciphers = Some(names.into())),
    ),
    (
        "ssl_wbuf_size",
        Value::Whole(ANY),
        Sets(|config, kib| {
            config.tls.write_buffer_kib = kib as usize;
            let what = "-o ssl_wbuf_size has no effect: replies leave in full records";
            config.notices.push(what.to_owned());
        }),
    ),
    (
        "ssl_session_cache",
        Value::None,
        Sets(|config, _| config.tls.counts_sessions = true),
    ),
    (
        "ssl_kernel_tls",
        Value::None,
        Nothing("the server encrypts by itself"),
    ),
    (
        "ssl_min_version",
        Value::Whole(0..=3),
        Sets(|config, version| {
            if version < 2 {
                config.notices.push(format!(
                    "-o ssl_min_version={version}: TLS 1.2 is the oldest version that is spoken"
                ));
            }
            config.tls.min_version = match version {
                3 => MinVersion::Tls13,
                _ => MinVersion::Tls12,
            }
        }),
    ),
];

/// Reads comma-separated lists of options into the configuration. An option without an effect adds
/// a notice.
pub fn read(lists: &[String], config: &mut Config) -> anyhow::Result<()> {
    for option in lists.iter().flat_map(|list| list.trim_start().split(',')) {
        if !option.is_empty() {
            take(option, config)?;
        }
    }
    Ok(())
}

/// Whether an option is given without a value.
pub fn is_switch(name: &str) -> bool {
    let wanted = OPTIONS.iter().find(|(known, ..)| *known == name);
    matches!(wanted, Some((_, Value::None, _)))
}

/// The option that says the same as `NAME = true` or `NAME = false`. None: a switch is off that
/// only its name turns on. A name that is no switch is returned as it is, which [`read`] refuses.
pub fn switch(name: &str, is_on: bool) -> Option<String> {
    let off = format!("no_{name}");
    match is_on {
        false if is_switch(&off) => Some(off),
        false if is_switch(name) => None,
        _ => Some(name.to_owned()),
    }
}

fn take(option: &str, config: &mut Config) -> anyhow::Result<()> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let known = OPTIONS.iter().find(|(known, ..)| *known == name);
    let Some((_, wanted, effect)) = known else {
        let written = name.trim().replace('-', "_").to_lowercase();
        let mut longer = OPTIONS
            .iter()
            .filter(|(known, ..)| known.starts_with(&written));
        let meant = longer.next().filter(|_| !written.is_empty());
        let meant = meant.map(|(known, ..)| format!("; did you mean {known}?"));
        return Err(Refused::value(format!(
            "Illegal suboption \"{option}\": -o takes memcached's options by their full names{}",
            meant.unwrap_or_default()
        )));
    };
    let number = wanted
        .check(value)
        .map_err(|reason| Refused::value(format!("-o {option}: {reason}")))?;
    match effect {
        Sets(set) => set(config, number),
        Takes(take) => take(config, value.unwrap_or_default()),
        Holds => {}
        Nothing(reason) => config
            .notices
            .push(format!("-o {option} has no effect: {reason}")),
        Refuse(reason) => {
            return Err(Refused::usage(format!(
                "-o {option}: {reason}; leave it out"
            )));
        }
    }
    Ok(())
}

impl Value {
    /// Checks a value. Returns the integer, or what is wrong with it.
    fn check(&self, value: Option<&str>) -> Result<i64, String> {
        match (self, value) {
            (Value::None, _) | (Value::Optional(_), None) => Ok(0),
            (_, None) => Err("a value is missing: write it after =".into()),
            (Value::Whole(bounds) | Value::Optional(bounds), Some(text)) => {
                let (least, most) = (bounds.start(), bounds.end());
                match text.parse() {
                    Ok(number) if bounds.contains(&number) => Ok(number),
                    _ => Err(format!("it must be a whole number from {least} to {most}")),
                }
            }
            (Value::Above(least, most), Some(text)) => match text.parse::<f64>() {
                Ok(number) if number > *least && number <= *most => Ok(0),
                _ if *most == f64::INFINITY => Err(format!("it must be a number above {least}")),
                _ => Err(format!(
                    "it must be a number above {least} and at most {most}"
                )),
            },
            (Value::OneOf(words), Some(text)) if !words.contains(&text) => {
                Err(format!("it must be one of {}", words.join(", ")))
            }
            (Value::OneOf(_) | Value::Text, Some(_)) => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(list: &str) -> Result<Config, (u8, String)> {
        let mut config = Config::default();
        let read = super::read(&[list.into()], &mut config);
        read.map(|()| config).map_err(|error| {
            let refused = error.downcast::<Refused>().expect("a refusal");
            (refused.exit_code, refused.to_string())
        })
    }

    #[test]
    fn what_means_something_here_is_honoured() {
        let config = read("idle_timeout=3,no_maxconns_fast").unwrap();
        assert_eq!(config.idle_timeout, Some(Duration::from_secs(3)));
        assert!(!config.rejects_beyond_max);
        let config = read("no_modern,maxconns_fast,lru_crawler,idle_timeout=0").unwrap();
        assert!(config.rejects_beyond_max && config.crawler && config.idle_timeout.is_none());
        let config = read("no_modern").unwrap();
        assert!(!config.rejects_beyond_max && !config.crawler);
    }

    #[test]
    fn what_means_nothing_here_is_said_once() {
        let extended = read("modern,slab_automove,hot_lru_pct=20,relaxed_privileges").unwrap();
        let [slabs, segments] = extended.notices.as_slice() else {
            panic!("{:?}", extended.notices);
        };
        assert!(slabs.contains("slab_automove") && segments.contains("hot_lru_pct=20"));
    }

    /// memcached's units have changed: 16 KiB were 16384 once, and are 16 today.
    #[test]
    fn the_largest_chunk_is_told_in_bytes_or_kilobytes() {
        for size in ["slab_chunk_max=16", "slab_chunk_max=16384"] {
            assert_eq!(read(size).unwrap().notices.len(), 1, "{size}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_as_memcached_refuses_it() {
        for wrong in [
            "nonsense",
            "hashpower",
            "hashpower=11",
            "hashpower=33",
            "tail_repair_time=9",
            "hash_algorithm=md5",
            "slab_automove=3",
            "slab_automove_ratio=0",
            "slab_automove_window=2",
            "hot_max_factor=x",
            "hot_lru_pct=80",
            "idle_timeout",
            "read_buf_mem_limit=lots",
        ] {
            let (code, message) = read(wrong).expect_err(wrong);
            assert_eq!(code, 1, "{wrong}");
            assert!(message.contains(wrong), "{message}");
        }
        assert_eq!(read("ext_path=/tmp/x:1G").unwrap_err().0, 64);
        let refused = |option| read(option).unwrap_err().1;
        assert!(refused("hot_max_factor=-1").ends_with("a number above 0"));
        assert!(refused("slab_automove_ratio=2").ends_with("above 0 and at most 1"));
    }

    #[test]
    fn the_documentation_has_a_row_for_each_option_with_an_effect_and_no_others() {
        let page = include_str!("../../../../docs/flags.md");
        let (_, section) = page.split_once("## Extended options").expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|row| row.split(" | ").next());
        let documented: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let is = |row: &str, name: &str| row.split('=').next() == Some(name);
        for (name, _, effect) in OPTIONS {
            let is_there = documented.iter().any(|row| is(row, name));
            let has_effect = matches!(effect, Sets(_) | Takes(_));
            assert_eq!(
                is_there, has_effect,
                "docs/flags.md, Extended options: {name}"
            );
        }
        for row in documented {
            let is_known = OPTIONS.iter().any(|(name, ..)| is(row, name));
            assert!(
                is_known,
                "docs/flags.md, Extended options, has a row for {row}"
            );
        }
    }
}

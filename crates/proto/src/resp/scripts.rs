//! Lua scripts that libraries for caches, locks and limits send, and that are executed without an
//! interpreter: each is one change of one item. They are recognised by their digests, so that a
//! script that differs in a single space is another one. docs/resp.md lists the libraries.

use super::call::Call;
use super::form::Shows;
use super::lines;
use super::names::upper;
use super::set;
use super::words::Words;
use crate::request::{AddRule, Condition, Lifetime, Renewal, Write};
use crate::text::Step;
use crate::{Verb, integer};
use glimmer_base::limits::RESP_SCRIPT_BYTES_MAX;

/// What a script does with its key, and with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Deletes the key if it has the value of the first argument.
    DeleteIfEqual,
    /// The same, and says -1 if there is no such key.
    DeleteIfEqualOrMissing,
    /// Gives the key the lifetime of the second argument if it has the value of the first.
    ExpireIfEqual,
    /// The same, where the lifetime is added to what is left if the third argument is `0`. A key
    /// that stays for ever is left as it is.
    ExtendIfEqual,
    /// Stores the first argument for as many seconds as the second says, if there is no such key.
    AddSeconds,
    /// Stores the first argument for as many milliseconds as the second says, if there is no such
    /// key, and says how many keys that was.
    AddMilliseconds,
    /// Stores the first argument if the key has the value of the second one; a third and a fourth
    /// argument say for how long.
    StoreIfEqual,
    /// Adds the first argument to a number.
    Increment,
    /// The same, if there is such a key.
    IncrementIfPresent,
    /// Adds the second argument to a number, which stays for as many seconds as the first says if
    /// it was zero before.
    IncrementExpiringFirst,
    /// Adds the first argument to a number, which stays for as many seconds as the second says if
    /// it had no lifetime before. Says the number and the milliseconds that it stays.
    IncrementExpiring,
    /// Adds one to a number. Without a lifetime it is one, and stays for as many milliseconds as
    /// the first argument says. Says the number and the milliseconds that it stays.
    CountWindow,
    /// Says the value and the milliseconds that it stays.
    ShowWindow,
}

/// The digest of each script, and what the script does.
const SCRIPTS: &[(&str, Action)] = &[
    // redis-py's locks, which django-redis and dogpile.cache use: release, extend, reacquire.
    (
        "c3f8721cbb97f72bc19e972846bd7aaf91901658",
        Action::DeleteIfEqual,
    ),
    (
        "a4e8783852e6b949f9ef3a97212805108459a890",
        Action::ExtendIfEqual,
    ),
    (
        "1cac51482acf5858da00f6d685d68f886cd6b6b2",
        Action::ExpireIfEqual,
    ),
    // phpredis' sessions: a lock is released. Many programs have the same script, or
    // that with spaces after its commas.
    (
        "b70c2384248f88e6b75b9f89241a180f856ad852",
        Action::DeleteIfEqual,
    ),
    (
        "cf0e94b2e9ffc7e04395cf88f7583fc309985910",
        Action::DeleteIfEqual,
    ),
    // Laravel: a lock is released, a key is added to the cache.
    (
        "647c65a442733a1aa440f99908d249d13b4d6c4a",
        Action::DeleteIfEqual,
    ),
    (
        "a08c9c69b7c07ae2485190873b90d128a23e502d",
        Action::AddSeconds,
    ),
    // aiocache: a lock is released, an optimistic lock stores a value.
    (
        "ae3671744a5dbb24ea37ef607b8b10ac7856d43e",
        Action::DeleteIfEqual,
    ),
    (
        "782e993d12091daacc7a3164ddf5c4624fe56042",
        Action::StoreIfEqual,
    ),
    // django-redis: incr, with and without a look for the key.
    (
        "f4a7da3e5d8ea3b46642af08427151cae0190400",
        Action::IncrementIfPresent,
    ),
    (
        "4d15273b16b10c15e1d9202cbe93c959ab7d250b",
        Action::Increment,
    ),
    // limits: fixed windows.
    (
        "628bd136a573a06b346879695681af12ccef300f",
        Action::IncrementExpiringFirst,
    ),
    // rate-limiter-flexible, by Redis and by Valkey.
    (
        "a1de965f42e177aa339706bd580f049065eca79a",
        Action::IncrementExpiring,
    ),
    (
        "0aa93fe6a34317527000a66828426c0ae2104618",
        Action::IncrementExpiring,
    ),
    // rate-limit-redis, the store of express-rate-limit.
    (
        "895b92e1712734e1b464999be23953485475357b",
        Action::CountWindow,
    ),
    (
        "6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a",
        Action::ShowWindow,
    ),
    // redlock of Node.js, versions 4 and 5: acquire, extend, release.
    (
        "e5a322e2634ef59a516e8ea150cb085afafee684",
        Action::AddMilliseconds,
    ),
    (
        "ce46f80993d5dac20dd066eb301a4e37994bdbed",
        Action::ExpireIfEqual,
    ),
    (
        "0f0f23b9048b36752b5be114f357ba083449f908",
        Action::DeleteIfEqual,
    ),
    (
        "96da70f7716f27d278a5218544df37fd8b0a5e4c",
        Action::AddMilliseconds,
    ),
    (
        "aed6f382e410db8ba7926d4e5e9aab410bf2a78a",
        Action::ExpireIfEqual,
    ),
    (
        "e4612211c9f8f51c257e26e056b0a654b3187242",
        Action::DeleteIfEqual,
    ),
    // redsync of Go: release, extend.
    (
        "e950836ed1e694540c503ef9972b8de518044d3b",
        Action::DeleteIfEqualOrMissing,
    ),
    (
        "d75bb8b5bd13532ddedd17762e772346e39b321e",
        Action::ExpireIfEqual,
    ),
];

/// The script of this digest, in small letters or in capitals.
fn known(digest: &[u8]) -> Option<(&'static str, Action)> {
    let mut scripts = SCRIPTS.iter().copied();
    scripts.find(|(known, _)| digest.eq_ignore_ascii_case(known.as_bytes()))
}

/// The script of this text.
fn recognised(text: &[u8]) -> Option<(&'static str, Action)> {
    // Those that are known are short.
    let is_short = text.len() <= RESP_SCRIPT_BYTES_MAX;
    let digest = || sha1_smol::Sha1::from(text).digest().to_string();
    is_short.then(|| known(digest().as_bytes()))?
}

/// `EVAL script keys key ... argument ...`.
pub(super) fn eval<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    match recognised(call.arguments[1]) {
        Some((_, action)) => run(call, action),
        None => call.refuse(lines::NO_SUCH_SCRIPT),
    }
}

/// `EVALSHA digest keys key ... argument ...`.
pub(super) fn eval_digest<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    match known(call.arguments[1]) {
        Some((_, action)) => run(call, action),
        None => call.refuse(lines::NO_SCRIPT),
    }
}

/// `SCRIPT LOAD text`, `SCRIPT EXISTS digest ...` and `SCRIPT FLUSH`.
pub(super) fn script<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut buffer = [0; 8];
    match (upper(call.arguments[1], &mut buffer), call.count) {
        (b"LOAD", 3) => match recognised(call.arguments[2]) {
            Some((digest, _)) => call.answer(Words::Text, digest.as_bytes()),
            None => call.refuse(lines::NO_SUCH_SCRIPT),
        },
        (b"EXISTS", 3..) if call.count as usize > call.arguments.len() => {
            call.refuse(lines::TOO_MANY_ARGUMENTS)
        }
        (b"EXISTS", 3..) => {
            let digests = call.arguments[2..].iter();
            let are = digests.fold(0, |are, digest| {
                are << 1 | u32::from(known(digest).is_some())
            });
            let count = call.count - 2;
            call.answer(Words::Flags { are, count }, &[])
        }
        (b"FLUSH", count) => {
            let mut buffer = [0; 8];
            let how = call.arguments.get(2).copied().unwrap_or_default();
            call.refuse(match (count, upper(how, &mut buffer)) {
                (2, _) | (3, b"ASYNC" | b"SYNC") => lines::OK,
                _ => lines::SCRIPT_FLUSH,
            })
        }
        (b"LOAD", _) => call.answer(Words::WrongArity("script|load"), &[]),
        (b"EXISTS", _) => call.answer(Words::WrongArity("script|exists"), &[]),
        _ => call.other_subcommand("SCRIPT"),
    }
}

/// Executes a script.
fn run<'a>(call: &Call<'_, 'a>, action: Action) -> Step<'a> {
    // Each has one key.
    let (Some(&b"1"), Some(&key)) = (call.arguments.get(2), call.arguments.get(3)) else {
        return call.refuse(lines::NO_SUCH_SCRIPT);
    };
    let arguments = &call.arguments[4..];
    let bytes = |nth: usize| arguments.get(nth).copied().unwrap_or_default();
    let number = |nth| integer::signed_64(bytes(nth));
    let seconds_ms = |nth| number(nth)?.checked_mul(1000);
    let step = |verb, shows| call.request_for(key, verb, shows);
    let add = |delta, rule| {
        Some(Verb::Add {
            delta: delta?,
            rule,
        })
    };
    let made = match action {
        Action::DeleteIfEqual => {
            return step(Verb::DeleteEqual { value: bytes(0) }, Shows::Flag);
        }
        Action::DeleteIfEqualOrMissing => {
            return step(Verb::DeleteEqual { value: bytes(0) }, Shows::FlagOrMissing);
        }
        Action::ShowWindow => return step(Verb::Get, Shows::ValueAndMilliseconds),
        Action::AddSeconds => {
            let lifetime = seconds_ms(1).filter(|&ms| ms > 0);
            return store(call, key, (lifetime, bytes(0)), Shows::Status);
        }
        Action::AddMilliseconds => {
            let lifetime = number(1).filter(|&ms| ms > 0);
            return store(call, key, (lifetime, bytes(0)), Shows::Flag);
        }
        Action::StoreIfEqual => return store_if_equal(call, key),
        Action::ExpireIfEqual => number(1).map(|ms| Verb::ExpireEqual {
            value: bytes(0),
            ms,
            renewal: Renewal::Replace,
        }),
        Action::ExtendIfEqual => number(1).map(|ms| Verb::ExpireEqual {
            value: bytes(0),
            ms,
            renewal: match bytes(2) {
                b"0" => Renewal::Add,
                _ => Renewal::ReplaceLimited,
            },
        }),
        Action::Increment => add(number(0), AddRule::Make),
        Action::IncrementIfPresent => add(number(0), AddRule::IfPresent),
        Action::IncrementExpiringFirst => {
            seconds_ms(0).and_then(|ms| add(number(1), AddRule::ExpiresIfFirst { ms }))
        }
        Action::IncrementExpiring => {
            seconds_ms(1).and_then(|ms| add(number(0), AddRule::ExpiresIfUnlimited { ms }))
        }
        Action::CountWindow => {
            number(0).and_then(|ms| add(Some(1), AddRule::RestartsIfUnlimited { ms }))
        }
    };
    let shows = match action {
        Action::ExpireIfEqual | Action::ExtendIfEqual => Shows::Flag,
        Action::IncrementExpiring | Action::CountWindow => Shows::NumberAndMilliseconds,
        _ => Shows::Number,
    };
    match made {
        Some(verb) => step(verb, shows),
        None => call.refuse(lines::NOT_AN_INTEGER),
    }
}

/// Stores a value under a key that has none, for these milliseconds.
fn store<'a>(
    call: &Call<'_, 'a>,
    key: &'a [u8],
    (lifetime_ms, value): (Option<i64>, &'a [u8]),
    shows: Shows,
) -> Step<'a> {
    let Some(ms) = lifetime_ms else {
        return call.answer(Words::BadLifetime("setex"), &[]);
    };
    let write = Write {
        condition: Condition::Absent,
        lifetime: Lifetime::Ms(ms as u64),
        ..Write::of(value)
    };
    set::store(call, key, write, shows)
}

/// Stores the first argument if the key has the value of the second.
fn store_if_equal<'a>(call: &Call<'_, 'a>, key: &'a [u8]) -> Step<'a> {
    let [value, expected, ref rest @ ..] = call.arguments[4..] else {
        return call.refuse(lines::SYNTAX);
    };
    let mut write = Write::of(value);
    if !set::equal(call, &mut write, value, expected) {
        return call.refuse(lines::SYNTAX);
    }
    if let [option, number] = *rest {
        match set::lifetime(option, number) {
            Some(lifetime) => write.lifetime = lifetime,
            None => return call.answer(Words::BadLifetime("set"), &[]),
        }
    }
    set::store(call, key, write, Shows::StatusOrZero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_they_are_sent() {
        for (digest, action) in SCRIPTS {
            assert_eq!(digest.len(), 40);
            assert!(
                digest
                    .bytes()
                    .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
            );
            assert_eq!(
                known(digest.to_uppercase().as_bytes()),
                Some((*digest, *action))
            );
        }
        let mut digests: Vec<_> = SCRIPTS.iter().map(|(digest, _)| digest).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), SCRIPTS.len());
    }

    #[test]
    fn a_script_is_recognised_by_its_text() {
        let text = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return \
            redis.call(\"del\",KEYS[1]) else return 0 end";
        let (digest, _) = recognised(text.as_bytes()).expect("it is known");
        assert_eq!(digest, "b70c2384248f88e6b75b9f89241a180f856ad852");
        assert_eq!(recognised(b"return 1"), None);
        assert_eq!(recognised(text.repeat(1000).as_bytes()), None);
    }
}

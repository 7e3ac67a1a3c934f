use super::*;
use crate::serve::{Arguments, CONFIGURATION, exit_code};
use clap::FromArgMatches;
use glimmer_server::Config;
use std::os::unix::ffi::OsStringExt;

fn whole(file: &str, environment: &[(&str, &str)], typed: &str) -> Result<Whole, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    std::fs::write(&path, file).unwrap();
    let own = |text: &&str| (*text).to_owned();
    let environment: Vec<(String, OsString)> = environment
        .iter()
        .map(|(name, value)| (own(name), own(value).into()))
        .collect();
    let mut words: Vec<OsString> = vec!["--config".into(), path.into()];
    words.extend(typed.split_whitespace().map(OsString::from));
    let here = folder.path().display().to_string() + "/";
    Whole::of(&words, &environment).map_err(|error| error.to_string().replace(&here, ""))
}

fn config(file: &str, environment: &[(&str, &str)], typed: &str) -> Result<Config, String> {
    let whole = whole(file, environment, typed)?;
    let words = std::iter::once(OsString::from("serve")).chain(whole.words);
    let matches = flags().try_get_matches_from(words).unwrap();
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    arguments.config().map_err(|error| error.to_string())
}

#[test]
fn a_file_has_every_kind_of_value() {
    let file = r#"
# A comment.
memory-limit = "2g"
threads = 2
listen = ["127.0.0.1:1", "127.0.0.2:2"]
disable-cas = true
disable-watch = false
verbose = 2
lru-threshold = 0.5
disable-commands = ["shutdown", "dispatch"]

[extended]
idle_timeout = 7
no_maxconns_fast = true
no_lru_crawler = false
ssl_session_cache = false
"#;
    let config = config(file, &[], "").unwrap();
    assert_eq!((config.memory_bytes, config.workers), (2 << 30, 2));
    assert_eq!(config.tcp.len(), 2);
    assert!(!config.cas && !config.rejects_beyond_max && config.crawler);
    assert_eq!((config.verbosity, config.lru_threshold), (2, 0.5));
    assert_eq!(config.idle_timeout.unwrap().as_secs(), 7);
    use glimmer_server::AdminCommand::{Dispatch, Shutdown, Watch};
    let has = [Dispatch, Shutdown, Watch].map(|it| config.permits.has(it));
    assert_eq!(has, [false, false, true]);
}

/// Switches of -o are on by default, or off. A file takes back both, in the order of its lines.
#[test]
fn an_option_that_is_false_is_off() {
    let file = "[extended]\nmaxconns_fast = false\nlru_crawler = false\nssl_session_cache = false";
    let of_file = config(file, &[], "").unwrap();
    assert!(!of_file.rejects_beyond_max && !of_file.crawler && !of_file.tls.counts_sessions);
    let file = "[extended]\nmodern = false\nlru_crawler = true";
    let of_file = config(file, &[], "").unwrap();
    assert!(!of_file.rejects_beyond_max && of_file.crawler);
}

#[test]
fn flags_come_before_variables_and_variables_before_the_file() {
    let file = "memory-limit = 100\nthreads = 3\nconn-limit = 10\nlisten = '127.0.0.1'\npin = true";
    let environment = [
        ("GLIMMER_THREADS", "2"),
        ("GLIMMER_CONN_LIMIT", "20"),
        ("GLIMMER_LISTEN", "127.0.0.2"),
        ("GLIMMER_PIN", "false"),
    ];
    let config = config(file, &environment, "-c 30 -l 127.0.0.3").unwrap();
    assert_eq!(config.memory_bytes, 100 << 20, "of the file");
    assert_eq!(config.workers, 2, "of the environment");
    assert_eq!(config.connections_max, 30, "of the command line");
    let addresses: Vec<String> = config.tcp.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["127.0.0.3:11211"], "lists do not add up");
    assert!(!config.pin, "a variable takes back a switch");
}

/// Each mistake is said with its place, all of them at once.
#[test]
fn mistakes_are_told_with_their_lines() {
    for (file, told) in [
        (
            "memory-limt = 5",
            "x.toml:1: there is no setting memory-limt; did you mean memory-limit?",
        ),
        (
            "P = \"x\"",
            "x.toml:1: there is no setting P; did you mean pidfile?",
        ),
        (
            "memory_limit = 5",
            "x.toml:1: there is no setting memory_limit; did you mean memory-limit?",
        ),
        (
            "\n\nmemory-limit = 'lots'",
            "x.toml:3: invalid value 'lots' for '--memory-limit <MIB>'",
        ),
        ("pin = 'x'", "x.toml:1: pin is true or false"),
        ("threads = true", "x.toml:1: threads has a value"),
        ("verbose = 'x'", "x.toml:1: verbose is a number"),
        ("[memory]\nlimit = 5", "x.toml:1: memory is no table"),
        ("threads = 1\nthreads = 2", "x.toml:2: "),
        ("threads = ", "x.toml:1: "),
        (
            "threads = 2\n[extended]\nidle_timeot = 5",
            "x.toml:3: Illegal suboption",
        ),
        (
            "\n\nextended = 'modern,hashpower=x'",
            "x.toml:3: -o hashpower=x: it must be",
        ),
        (
            "listen = [1, \u{1}]",
            "x.toml:1: unexpected character found: `\\u{1}`",
        ),
        (
            "\nlisten = []",
            "x.toml:2: listen names no address; give one",
        ),
        (
            "[extended]\nnonsense = false",
            "x.toml:2: Illegal suboption \"nonsense\"",
        ),
        (
            "[extended]\nlru_crawler = 0",
            "x.toml:2: lru_crawler is true or false",
        ),
        (
            "[extended]\nidle_timeout = false",
            "x.toml:2: -o idle_timeout: a value is missing",
        ),
        ("license = true", "x.toml:1: there is no setting license"),
        ("config = 'x'", "x.toml:1: there is no setting config"),
    ] {
        let error = whole(file, &[], "").err().expect(file);
        assert!(error.starts_with(told), "{file}: {error}");
    }
    let file = "[extended]\nmodern = 0\nhashpower = 20\nidle_timeout = 'x'\nnone = 1";
    let error = whole(file, &[], "").err().unwrap();
    let starts = ["x.toml:2: modern", "x.toml:4: -o idle", "x.toml:5: Ill"];
    assert!(
        error
            .lines()
            .map(|line| &line[..9])
            .eq(starts.map(|it| &it[..9])),
        "{error}"
    );
    let error = whole("a = 1\nthreads = -1\nb = 2", &[], "").err().unwrap();
    assert_eq!(error.lines().count(), 3, "{error}");
    let missing = Whole::of(&["--config=/nowhere/x".into()], &[])
        .err()
        .unwrap();
    assert!(
        missing
            .to_string()
            .starts_with("/nowhere/x: cannot be read: ")
    );
    let wrong = whole("", &[("GLIMMER_THREADS", "many")], "").err().unwrap();
    assert!(
        wrong.starts_with("GLIMMER_THREADS=many: invalid value"),
        "{wrong}"
    );
    let wrong = whole("", &[("GLIMMER_PIN", "x")], "").err().unwrap();
    assert_eq!(wrong, "GLIMMER_PIN=x: pin is true or false");
}

#[test]
fn variables_of_others_do_not_prevent_the_start() {
    let environment = [
        ("GLIMMER_PORT", "tcp://10.0.0.1:11211"),
        ("GLIMMER_PORT_11211_TCP_ADDR", "10.0.0.1"),
        ("GLIMMER_SERVICE_HOST", "10.0.0.1"),
        ("GLIMMER_METRICS_SERVICE_PORT", "9150"),
        ("GLIMMER_XYZZY", "1"),
        ("GLIMMER_BIN", "near to pin"),
        ("GLIMMER_SEED", "1"),
        ("GLIMMER_MEMORY_LIMITS", "1"),
    ];
    let whole = whole("", &environment, "").unwrap();
    assert_eq!(whole.origins, []);
    let notice = "the variable GLIMMER_MEMORY_LIMITS is no setting; did you mean \
                  GLIMMER_MEMORY_LIMIT?";
    assert_eq!(whole.notices, [notice]);
}

#[test]
fn a_variable_that_takes_the_place_of_the_options_of_a_file_is_told() {
    let file = "threads = 2\n[extended]\nidle_timeout = 5";
    let variable = [("GLIMMER_EXTENDED", "modern")];
    let told = |file, variables, typed| whole(file, variables, typed).unwrap().notices;
    let notices = told(file, &variable[..], "");
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    let words = "the variable GLIMMER_EXTENDED replaces all options of extended at ";
    assert!(notice.starts_with(words), "{notice}");
    assert!(notice.ends_with("x.toml:2"), "{notice}");
    assert!(told("threads = 2", &variable[..], "").is_empty());
    assert!(told(file, &[], "").is_empty());
    assert!(told(file, &variable[..], "-o modern").is_empty());
}

/// Only a variable of others may be any bytes: a setting that is passed over could be a login.
#[test]
fn a_variable_that_is_no_text_is_refused() {
    let value = OsString::from_vec(b"/etc/\xfcsers".to_vec());
    for name in [
        "GLIMMER_AUTH_FILE",
        "GLIMMER_USERS",
        "GLIMMER_DISABLE_COMMANDS",
    ] {
        let refused = Whole::of(&[], &[(name.into(), value.clone())]);
        let error = refused.err().expect(name);
        let told = format!("{name}=/etc/\u{fffd}sers: it is not UTF-8");
        assert_eq!(
            (error.to_string(), exit_code(&error)),
            (told, Some(CONFIGURATION))
        );
    }
    for name in ["GLIMMER_XYZZY", "GLIMMER_PORT_1_TCP", "HOME"] {
        let whole = Whole::of(&[], &[(name.into(), value.clone())]).expect(name);
        assert_eq!(whole.origins, [], "{name}");
    }
}

/// Settings that are wrong together, or only in this configuration, are mistakes of the file too.
#[test]
fn what_cannot_be_served_is_a_mistake_of_the_file() {
    let code = |file: &str, typed: &str| {
        let whole = whole(file, &[], typed).expect(file);
        let error = command::checked(&whole).expect_err(file);
        exit_code(&whole.blamed(error))
    };
    for file in [
        "enable-sasl = true",
        "lru-threshold = 7.0",
        "lru-threshold = nan",
        "threads = 300",
        "max-item-size = '2g'",
        "listen = ['']",
        "dispatch = 'size-aware'\naccess = 'erew'",
        "port = 9150\nhttp = 9150",
        "detail-delimiter = ':'\nprefix-delimiter = ':'",
    ] {
        assert_eq!(code(file, ""), Some(CONFIGURATION), "{file}");
    }
    assert_eq!(code("verbose = 1", "-I 2g"), Some(64), "as in memcached");
    assert_eq!(code("access = 'erew'", "--dispatch size-aware"), Some(78));
}

#[test]
fn the_environment_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y");
    std::fs::write(&path, "threads = 5").unwrap();
    let environment = [("GLIMMER_CONFIG".into(), path.clone().into())];
    let whole = Whole::of(&[], &environment).unwrap();
    assert_eq!(whole.words, ["--threads=5"]);
    assert_eq!(whole.origins, [("threads".into(), Origin::File(path, 1))]);
}

/// Every flag can be a setting: each has a long name, and its own help can be had as words.
#[test]
fn every_flag_of_serve_is_a_setting() {
    let flags = flags();
    for flag in flags.get_arguments() {
        let name = flag
            .get_long()
            .unwrap_or_else(|| panic!("{flag}: no long name"));
        let variable = environment::name_of(name);
        assert!(variable.is_ascii(), "{variable}");
    }
    assert!(settings(&flags).count() > 60);
}

#[test]
fn memcacheds_file_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memcached.conf");
    let debian = "# memcached default config file\n\n-d\nlogfile /var/log/memcached.log\n\n# -v\n\
                  -vv\n-m 64\n-p 11211\n-u memcache\n-l 127.0.0.1\n-l ::1\n-I 2m\n\
                  -P /var/run/memcached/memcached.pid\n-o idle_timeout=5,modern\n\
                  -c 99 # connections # at most\n-b 9#\n-D \\#\n";
    std::fs::write(&path, debian).unwrap();
    let converted = memcached::convert(&path).unwrap();
    let expected = "# memcached default config file\n\ndaemon = true\n\
                    # logfile /var/log/memcached.log: the log goes to stderr, from where systemd \
                    takes it into the journal\n\n# -v\n\
                    verbose = 2\nmemory-limit = 64\nport = 11211\nuser = \"memcache\"\n\
                    listen = [\"127.0.0.1\", \"::1\"]\nmax-item-size = \"2m\"\n\
                    pidfile = \"/var/run/memcached/memcached.pid\"\n\
                    extended = \"idle_timeout=5,modern\"\n\
                    # connections # at most\nconn-limit = 99\n#\nlisten-backlog = 9\n\
                    detail-delimiter = \"#\"\n";
    assert_eq!(converted, expected);
    let config = config(&converted, &[], "").unwrap();
    assert_eq!((config.memory_bytes, config.tcp.len()), (64 << 20, 2));
    std::fs::write(&path, "-m 64\n-m lots\n--nonsense\n").unwrap();
    let error = memcached::convert(&path).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert!(
        lines[0].contains("memcached.conf:2: invalid value 'lots'"),
        "{error}"
    );
    assert!(lines[1].contains("memcached.conf:3: "), "{error}");
}

/// What `config print` says is a file of settings that comes to the same.
#[test]
fn what_is_printed_can_be_read() {
    let typed: Vec<OsString> = ["-m", "100", "-l", "127.0.0.1", "-Y", "/x", "--pin"]
        .map(OsString::from)
        .into();
    let environment = [("GLIMMER_CONN_LIMIT".to_owned(), "77".into())];
    let printed = command::shown(&typed, &environment).unwrap();
    let line = |name: &str| {
        let mut lines = printed.lines();
        let found = lines.find(|line| line.starts_with(name)).expect(name);
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("memory-limit"), "memory-limit = 100 # command line");
    assert_eq!(
        line("conn-limit"),
        "conn-limit = 77 # variable GLIMMER_CONN_LIMIT"
    );
    assert_eq!(line("listen-backlog"), "listen-backlog = 1024 # default");
    assert_eq!(line("protocol"), "protocol = \"ascii\" # default");
    assert!(printed.contains("\n# user\n"), "{printed}");
    let again = config(&printed, &[], "").unwrap();
    assert_eq!((again.memory_bytes, again.connections_max), (100 << 20, 77));
    assert!(again.pin && again.auth_file.is_some());
}

/// What is printed listens where the flags listen, and does what they do.
#[test]
fn what_is_printed_comes_to_the_same() {
    for line in [
        "",
        "-l 127.0.0.1:40841,127.0.0.2",
        "-l 127.0.0.1:40841 -U 40842",
        "-U -1 -l 127.0.0.1",
        "-p -1 -l 127.0.0.1:40841 -U 0",
        "-p 0 -U 40842 -l 127.0.0.1",
        "-s /tmp/socket -a 770",
        "-M -m 100 -I 2m",
        "--table memc3 -t 2 --access crew",
        "-S -Y /x -t 1",
        "--dispatch size-aware:5000 -t 4 --large-cores 2 -vv",
        "-o no_modern,idle_timeout=5 -F -W --disable-commands config,stats -D .",
        "--http 9150 --native-port 40843 --pin -R 5 -b 7 --tcp-keepalive 0",
    ] {
        let typed: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let printed = command::shown(&typed, &[]).expect(line);
        let shown = |mut config: Config| {
            // Only said in `stats settings`: all interfaces are a star there, or none is named.
            config.interfaces = None;
            format!("{config:#?}")
        };
        let of_flags = shown(config("", &[], line).expect(line));
        let of_file = shown(config(&printed, &[], "").expect(&printed));
        let differing = of_flags.lines().zip(of_file.lines());
        let differing: Vec<_> = differing.filter(|(flag, file)| flag != file).collect();
        assert_eq!(differing, [], "{line}:\n{printed}");
    }
}

/// Any text is read or refused, and what is refused is said with a line.
#[test]
fn any_file_is_read_or_refused() {
    use glimmer_seeds::each_seed;
    const PARTS: [&str; 16] = [
        "memory-limit",
        "threads",
        "[extended]",
        "idle_timeout",
        "listen",
        "=",
        "\n",
        "64",
        "\"x\"",
        "true",
        "[",
        "]",
        "#",
        "'",
        "\u{0}",
        " ",
    ];
    each_seed(&[], |seed| {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..200 {
            let count = next() % 20;
            let text: String = (0..count)
                .map(|_| PARTS[next() as usize % PARTS.len()])
                .collect();
            if let Err(error) = whole(&text, &[], "") {
                let has_line = error.starts_with("x.toml:");
                assert!(has_line, "{seed}: {text:?}: {error}");
            }
        }
    });
}

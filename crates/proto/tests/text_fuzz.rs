//! Runs the fuzz targets for a bounded number of inputs: the committed corpus, then mutations of it
//! from a printed seed. GLIMMER_SEED replays a run, GLIMMER_FUZZ_RUNS lengthens it.

use glimmer_proto::fuzzing::{binary, login, meta, native, resp, text_parser, udp};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// The stage `fuzz` runs the same targets, guided by coverage.
const RUNS_DEFAULT: u64 = 30_000;
const INPUT_BYTES_MAX: usize = 4 << 10;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = folder.join(target);
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn dictionary(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let words = std::fs::read_to_string(folder.join(target).with_extension("dict"));
    words.unwrap().lines().map(unescape).collect()
}

/// The bytes of one line of a libFuzzer dictionary.
fn unescape(line: &str) -> Vec<u8> {
    let mut text = line
        .strip_prefix('"')
        .and_then(|line| line.strip_suffix('"'))
        .unwrap();
    let mut bytes = Vec::new();
    while let Some(first) = text.chars().next() {
        if let Some(hex) = text.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(&hex[..2], 16).unwrap());
            text = &hex[2..];
        } else {
            bytes.push(u8::try_from(first).unwrap());
            text = &text[1..];
        }
    }
    bytes
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

fn mutate(rng: &mut SmallRng, input: &mut Vec<u8>, corpus: &[Vec<u8>], dictionary: &[Vec<u8>]) {
    let at = rng.random_range(0..=input.len());
    let end = rng.random_range(at..=input.len().min(at + 40));
    match rng.random_range(0..7) {
        0 if at < input.len() => input[at] = rng.random(),
        1 => input.insert(at, *b" \r\n\0k0-\t".choose(rng).unwrap()),
        2 => drop(input.drain(at..end)),
        3 => {
            let word = dictionary.choose(rng).unwrap();
            input.splice(at..at, word.iter().copied());
        }
        4 => {
            let other = corpus.choose(rng).unwrap();
            let from = rng.random_range(0..other.len());
            input.splice(at.., other[from..].iter().copied());
        }
        5 => {
            let copy = input[at..end].to_vec();
            input.splice(at..at, copy);
        }
        _ => input[0] = rng.random(),
    }
    if input.is_empty() {
        input.push(rng.random());
    }
}

fn run(target: fn(&[u8]), input: &[u8], from: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("input ({from}): \"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

fn the_corpus_and_its_mutations(name: &str, target: fn(&[u8])) {
    let seed = glimmer_seeds::seed();
    let runs = from_environment("GLIMMER_FUZZ_RUNS").unwrap_or(RUNS_DEFAULT);
    println!("GLIMMER_FUZZ_RUNS={runs}");
    let (corpus, dictionary) = (corpus(name), dictionary(name));
    assert!(
        corpus.len() >= 10 && dictionary.len() >= 15,
        "the corpus lost files"
    );
    for input in &corpus {
        run(target, input, "from the corpus");
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    for number in 0..runs {
        let mut input = corpus.choose(&mut rng).unwrap().clone();
        for _ in 0..rng.random_range(1..=6) {
            mutate(&mut rng, &mut input, &corpus, &dictionary);
        }
        input.truncate(INPUT_BYTES_MAX);
        let from = format!("mutation {number} of GLIMMER_SEED={seed}");
        run(target, &input, &from);
    }
}

#[test]
fn text() {
    the_corpus_and_its_mutations("text_parser", text_parser);
}

#[test]
fn meta_commands() {
    the_corpus_and_its_mutations("meta", meta);
}

#[test]
fn datagrams() {
    the_corpus_and_its_mutations("udp", udp);
}

#[test]
fn logins() {
    the_corpus_and_its_mutations("login", login);
}

#[test]
fn resp_commands() {
    the_corpus_and_its_mutations("resp", resp);
}

#[test]
fn binary_packets() {
    the_corpus_and_its_mutations("binary", binary);
}

#[test]
fn native_datagrams() {
    the_corpus_and_its_mutations("native", native);
}

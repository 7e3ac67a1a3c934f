//! The recorded traces: where they lie, and how they become files that the benchmark reads.

use crate::process::program;
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The list: a repository in brackets, and a line for each of its traces.
const LIST: &str = include_str!("traces.txt");
/// Where Caffeine's repository has its traces.
const CAFFEINE: &str =
    "simulator/src/main/resources/com/github/benmanes/caffeine/cache/simulator/parser";
/// Where converted traces go, from the repository's root on.
const CONVERTED: &str = "target/replays";

/// A trace of a public repository.
pub struct Trace {
    /// The repository's owner and name at GitHub.
    repository: &'static str,
    /// The file, from the folder of the repository's traces on.
    file: &'static str,
    /// How it is written: a name that `converted` knows.
    form: &'static str,
    /// Arguments of `glimmer bench hit-ratio`.
    pub arguments: Vec<&'static str>,
}

/// All traces, in the order of the table.
pub fn all() -> Vec<Trace> {
    let (mut traces, mut repository) = (Vec::new(), "");
    let is_entry = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for line in LIST.lines().filter(is_entry) {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(file), Some(form)) => traces.push(Trace {
                repository,
                file,
                form,
                arguments: words.collect(),
            }),
            _ => repository = line.trim_matches(['[', ']']),
        }
    }
    traces
}

impl Trace {
    /// Its name in the table: the file's, without endings.
    pub fn name(&self) -> &'static str {
        self.file.split('.').next().unwrap_or(self.file)
    }

    /// The file in its clone, which lies in this folder. An error says what to clone.
    pub fn find(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let repository = self.repository;
        let name = repository.rsplit('/').next().unwrap_or(repository);
        let clone = folder.join(name);
        let (at, url) = (clone.display(), format!("https://github.com/{repository}"));
        ensure!(
            clone.is_dir(),
            "no clone of {repository}: git clone --depth 1 {url} {at}"
        );
        let inside = match name {
            "caffeine" => Path::new(CAFFEINE).join(self.file),
            _ => self.file.into(),
        };
        let path = clone.join(&inside);
        ensure!(
            path.is_file(),
            "{at} has no {}: is it a whole clone of {url}?",
            inside.display()
        );
        Ok(path)
    }

    /// Unpacks and converts the file. Returns where the result is, from the repository's root on.
    pub fn convert(&self, file: &Path) -> anyhow::Result<PathBuf> {
        let ending = if self.form == "same" { "bin" } else { "txt" };
        let into = Path::new(CONVERTED).join(format!("{}.{ending}", self.name()));
        let converted = converted(self.form, unpacked(file)?)?;
        fs::create_dir_all(into.parent().expect("it is in a folder"))?;
        fs::write(&into, converted).with_context(|| into.display().to_string())?;
        Ok(into)
    }
}

/// What a file has inside, which its ending says how to unpack.
fn unpacked(file: &Path) -> anyhow::Result<Vec<u8>> {
    let unpacks = match file.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => "gzip",
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(file).with_context(|| file.display().to_string()),
    };
    let output = program(unpacks, &["-dc"]).arg(file).output();
    let output = output.with_context(|| format!("cannot start {unpacks}"))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// A trace of this form as the benchmark reads it: one key on each line, or a format of its own.
/// Big-endian integers are `words-4` or, of 64 bits and with a sign, `words-8`.
fn converted(form: &str, bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    match form {
        "same" => return Ok(bytes),
        "words-4" => {
            for &word in bytes.as_chunks().0 {
                writeln!(out, "{}", u32::from_be_bytes(word))?;
            }
        }
        "words-8" => {
            for &word in bytes.as_chunks().0 {
                writeln!(out, "{}", i64::from_be_bytes(word))?;
            }
        }
        _ => {
            for line in String::from_utf8_lossy(&bytes).lines() {
                let converted = convert(form, line, &mut out);
                converted.with_context(|| format!("no line of {form}: {line:?}"))?;
            }
        }
    }
    Ok(out)
}

/// Converts a line of text, and leaves out blank ones and those with a star. Without a result, the
/// line is not of this form.
fn convert(form: &str, line: &str, out: &mut Vec<u8>) -> Option<()> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    match (form, &fields[..]) {
        ("keys", [] | ["*"]) => Some(()),
        ("keys", [key]) => writeln!(out, "{key}").ok(),
        // The first of consecutive keys, and how many they are.
        ("runs", [first, number, ..]) => {
            let (first, number): (u64, u64) = (first.parse().ok()?, number.parse().ok()?);
            let mut keys = first..first.checked_add(number)?;
            keys.try_for_each(|key| writeln!(out, "{key}")).ok()
        }
        // The kind of an access, and a hexadecimal address.
        ("addresses", [_, address, ..]) => {
            let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
            writeln!(out, "{address}").ok()
        }
        // Columns that the benchmark wants commas between.
        ("time-key-bytes", [time, key, bytes]) => writeln!(out, "{time},{key},{bytes}").ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_becomes_one_that_the_benchmark_reads() {
        let forms = [
            ("same", &b"\x01\x00"[..], &b"\x01\x00"[..]),
            ("keys", b"7\r\n*\n\n8\n", b"7\n8\n"),
            ("runs", b"41 2 0 0\n7 1 0 1\n", b"41\n42\n7\n"),
            ("addresses", b"s 0x1f 1\n", b"31\n"),
            ("time-key-bytes", b"1 0 68\n", b"1,0,68\n"),
            (
                "words-4",
                b"\x00\x00\x01\x00\xff\xff\xff\xff",
                b"256\n4294967295\n",
            ),
            ("words-8", b"\xff\xff\xff\xff\xff\xff\xff\xfe", b"-2\n"),
        ];
        for (form, written, read) in forms {
            assert_eq!(converted(form, written.to_vec()).unwrap(), read, "{form}");
        }
        let error = converted("runs", b"one two\n".to_vec()).unwrap_err();
        assert!(error.to_string().contains("one two"), "{error}");
        for trace in all() {
            assert!(
                forms.iter().any(|(form, ..)| *form == trace.form),
                "{}",
                trace.file
            );
        }
    }

    #[test]
    fn an_absent_clone_or_trace_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let trace = all()
            .into_iter()
            .find(|it| it.name() == "arc/OLTP")
            .unwrap();
        let error = trace.find(folder.path()).unwrap_err().to_string();
        let advice = "git clone --depth 1 https://github.com/moka-rs/cache-trace ";
        assert!(error.contains(advice), "{error}");
        fs::create_dir(folder.path().join("cache-trace")).unwrap();
        let error = trace.find(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("cache-trace has no arc/OLTP.lis.zst"),
            "{error}"
        );
    }
}

//! Figures run, small, against real servers, and write files that can be read; claims that do not
//! hold fail the command.

#[path = "../../../tests/support/server_program.rs"]
mod server_program;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn figure(arguments: &[&str]) -> Output {
    const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer-bench");
    server_program::server_beside(PROGRAM);
    Command::new(PROGRAM)
        .arg("figure")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All names, from the list.
fn names() -> Vec<String> {
    let output = figure(&["list"]);
    assert!(output.status.success());
    let table = text(&output.stdout);
    let cells = table
        .lines()
        .skip(2)
        .filter_map(|line| line.split('|').nth(1));
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// A run of the test measures one figure in this many. It draws the others from their committed
/// records.
const SHARE: u64 = 6;

/// Checks that each file of a figure has the format that its name says.
fn check_files(name: &str, directory: &Path, is_measured: bool) {
    let file = |extension: &str| directory.join(name).with_extension(extension);
    let csv = fs::read_to_string(file("csv")).unwrap();
    let mut lines = csv.lines();
    let heads = lines.next().unwrap_or_default();
    assert!(heads.contains("repetitions"), "{name}: {heads}");
    assert!(lines.count() >= 1, "{name}: no rows");
    let svg = fs::read_to_string(file("svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{name}"
    );
    let png = fs::read(file("png")).unwrap();
    assert!(
        png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000,
        "{name}"
    );
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(file("json")).unwrap()).unwrap();
    assert_eq!(record["name"], name);
    assert_eq!(record["quick"], is_measured);
    assert!(record["machine"]["cores"].as_u64().unwrap() > 0);
    let rows = record["data"]["rows"].as_array().unwrap();
    let samples = rows
        .iter()
        .flat_map(|row| row["samples"].as_array().unwrap());
    assert!(samples.clone().count() > 0, "{name}: nothing was measured");
    assert!(
        samples
            .clone()
            .all(|sample| sample.as_f64().is_some_and(f64::is_finite)),
        "{name}"
    );
}

/// The text of all pages of figures, in the order of their names.
fn pages(docs: &Path) -> String {
    let files = fs::read_dir(docs.join("figures")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut pages: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    assert!(pages.len() > 2, "{pages:?}");
    let texts = pages.iter().map(|path| fs::read_to_string(path).unwrap());
    texts.collect()
}

/// Copies the committed record of a figure.
fn copy_record(name: &str, directory: &Path) {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    let record = format!("{name}.json");
    fs::copy(committed.join(&record), directory.join(&record)).expect(name);
}

#[test]
fn figures_run_quickly_and_the_page_shows_them() {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 2 {
        eprintln!("SKIPPED: a server and its client want a core each; this machine offers one");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let docs = directory.path();
    let out = docs.join("figures");
    fs::create_dir(&out).unwrap();
    let turn = glimmer_seeds::seed() % SHARE;
    let names = names();
    let mut measured = Vec::new();
    for (place, name) in names.iter().enumerate() {
        match place as u64 % SHARE == turn {
            true => measured.push(name.as_str()),
            false => copy_record(name, &out),
        }
    }
    // Two processes at a time, since most figures wait for a client or compute on one core. What
    // they measure is not judged.
    std::thread::scope(|scope| {
        for half in [0, 1] {
            let names = measured.iter().copied().skip(half).step_by(2);
            let arguments = names.chain(["--quick", "--out", out.to_str().unwrap()]);
            let arguments: Vec<_> = arguments.collect();
            assert!(arguments.len() > 3, "{arguments:?}");
            scope.spawn(move || {
                let output = figure(&arguments);
                assert!(output.status.success(), "{}", text(&output.stderr));
            });
        }
    });
    let drawn = figure(&["all", "--redraw", "--docs", docs.to_str().unwrap()]);
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let page = pages(docs);
    for name in &names {
        check_files(name, &out, measured.contains(&name.as_str()));
        assert!(
            page.contains(&format!("({name}.svg)")),
            "{name} is not on the page"
        );
    }
    assert!(!page.contains("Not measured yet"), "{page}");

    // Drawing again from the same data gives the same files.
    let picture = docs.join("figures").join(&names[0]).with_extension("svg");
    let before = fs::read(&picture).unwrap();
    fs::remove_file(&picture).unwrap();
    let again = figure(&[&names[0], "--redraw", "--docs", docs.to_str().unwrap()]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(fs::read(&picture).unwrap(), before);
    assert_eq!(pages(docs), page);
}

#[test]
fn a_verdict_that_is_worse_than_recorded_fails_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let out = ["--out", directory.path().to_str().unwrap()];
    let measured = figure(&[&["mica-skew", "--quick"][..], &out].concat());
    assert!(measured.status.success(), "{}", text(&measured.stderr));

    // The same record, with a hottest key that is requested no more than the average one.
    let json = directory.path().join("mica-skew.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    for value in record["data"]["rows"][0]["also"]["hottest key over the average key"]
        .as_array_mut()
        .unwrap()
    {
        *value = 1.0.into();
    }
    fs::write(&json, serde_json::to_vec(&record).unwrap()).unwrap();
    let judged = figure(&[&["mica-skew", "--redraw"][..], &out].concat());
    assert!(!judged.status.success());
    let complaint = text(&judged.stderr);
    assert!(
        complaint.contains("mica-skew: `hottest-key` is not reproduced"),
        "{complaint}"
    );
}

/// Named or not, and with one core as on a machine that has no more.
#[test]
fn a_figure_that_needs_more_cores_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let quickly = ["--quick", "--out", directory.path().to_str().unwrap()];
    let on_one_core = |names: &[&'static str]| {
        let run = || figure(&[names, &quickly].concat());
        glimmer_measure::machine::on_core(Some(0), run).unwrap()
    };
    let some = on_one_core(&["minos-live", "mica-skew"]);
    assert!(some.status.success(), "{}", text(&some.stderr));
    let said = text(&some.stdout);
    assert!(
        said.starts_with("minos-live is left out: it needs 2 cores"),
        "{said}"
    );
    let none = on_one_core(&["minos-live"]);
    assert!(!none.status.success());
    let complaint = text(&none.stderr);
    assert!(complaint.contains("no figure was measured"), "{complaint}");
    assert!(!complaint.contains("claims"), "{complaint}");
}

#[test]
fn what_is_not_a_figure_is_named() {
    let output = figure(&["mica-fig0"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("there is no figure named mica-fig0"));
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = figure(&["mica-skew", "--redraw", "--out", out]);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("has not been measured"),
        "{}",
        text(&output.stderr)
    );
}

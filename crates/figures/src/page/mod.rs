//! The pages of the documentation that show the figures: an index, and one page per paper.

mod chart;
mod summary;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    Figure, Record,
    catalogue::{self, Page},
    output,
};
use summary::Claim;

/// Pages, pictures and data, in the directory of the documentation.
pub const DIRECTORY: &str = "figures";
/// The index of the pages, in that directory.
const INDEX: &str = "README.md";
/// Width of the text, in columns.
const WIDTH: usize = 100;

const INTRODUCTION: &str = "\
# Figures

Each page below reproduces the figures and tables of one paper with this code. A page starts with a
summary of the paper's claims: the claim, the paper's number, ours, and whether the claim holds
here, with the bound that decided it. The figures follow, each with the paper's conclusion, our
method, our picture and every number.
";

const EXPLANATION: &str = "
## How to read a page

- Absolute numbers belong to the machine that is named below each figure. Compare shapes with the
  paper: which system wins, by roughly what factor, and where a curve bends.
- A verdict names the bound that decided it. The bound is lower than the paper's number where the
  machine, the client or the question differs from the paper's.
- A row without a verdict shows two numbers and claims nothing.
- Hollow marks are numbers that the paper states in its text or tables. None is read off a plot. The
  caption below each picture says which numbers they are and what the error bars mean.
- `NOISY` below a figure means that a reference measurement, random reads of memory, changed by more
  than 10% between repetitions. The machines that measured these pages are virtual and share caches
  and memory with others, so the reference changes even while they run nothing else. Each repetition
  measures everything that a claim compares, one after the other, so trust the ratios of such a
  figure and not its absolute numbers.

## How to measure the figures

```console
$ glimmer figure list                  # every figure, and what it needs
$ glimmer figure mica-fig10            # one figure, into ./figures
$ glimmer figure all --docs            # all figures, and these pages
$ glimmer figure all --docs --redraw   # these pages again, from the committed data
```

A claim that does not hold fails the command. A figure that the machine cannot measure is left out,
with a sentence that says why. [CONTRIBUTING.md](../../CONTRIBUTING.md#adding-a-figure) says how to
add a figure.
";

/// Writes the pages, and the chart of the README, for the records that lie in `docs`. Returns the
/// index's path.
pub fn write(docs: &Path) -> Result<PathBuf> {
    let directory = docs.join(DIRECTORY);
    for (file, text) in files(docs)? {
        let file = directory.join(file);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(directory.join(INDEX))
}

/// Names and contents of all files that are generated from the records in `docs`. A paper without a
/// figure has no page.
fn files(docs: &Path) -> Result<Vec<(String, String)>> {
    let directory = docs.join(DIRECTORY);
    let mut files = Vec::new();
    let mut index = format!("{INTRODUCTION}\n{}", summary::INDEX_HEAD);
    let has_figures = |page: &Page| !page.figures.is_empty();
    for page in catalogue::pages().into_iter().filter(has_figures) {
        let records = records(&page, &directory)?;
        let claims = claims(&records);
        index.push_str(&summary::index_row(&page, &claims));
        files.push((format!("{}.md", page.name), text(&page, &records, &claims)?));
    }
    index.push_str(EXPLANATION);
    files.push((INDEX.to_owned(), index));
    if let Some(chart) = chart::svg(&directory)? {
        files.push((chart::FILE.to_owned(), chart));
    }
    Ok(files)
}

type Records = Vec<(&'static dyn Figure, Option<Record>)>;

/// The figures of a page with their records, judged again. Figures that were not measured have no
/// record.
fn records(page: &Page, directory: &Path) -> Result<Records> {
    let judged = |&figure: &&'static dyn Figure| {
        let mut record = output::read(figure.spec().name, directory)?;
        if let Some(record) = &mut record {
            record.judge(figure);
        }
        Ok((figure, record))
    };
    page.figures.iter().map(judged).collect()
}

fn claims(records: &Records) -> Vec<Claim<'_>> {
    let measured = records.iter().filter_map(|(_, record)| record.as_ref());
    measured.flat_map(Claim::of).collect()
}

fn text(page: &Page, records: &Records, claims: &[Claim<'_>]) -> Result<String> {
    let mut text = format!("# {}\n\n{}\n", page.title, wrapped(page.about));
    if !claims.is_empty() {
        text.push_str("\n## Summary of the claims\n\n");
        text.push_str(&summary::table(claims));
    }
    text.push_str("\n[How to read this page](README.md#how-to-read-a-page)\n");
    for (figure, record) in records {
        section(*figure, record.as_ref(), &mut text)?;
    }
    Ok(text)
}

fn section(figure: &dyn Figure, record: Option<&Record>, text: &mut String) -> Result<()> {
    let spec = figure.spec();
    let name = spec.name;
    write!(
        text,
        "\n<a id=\"{name}\"></a>\n\n## {}\n\n{}\n\n{}\n\n{}\n",
        spec.title,
        wrapped(&format!("`{name}`: {}.", spec.source)),
        wrapped(&format!("**Claim:** {}", spec.claim)),
        wrapped(&format!("**Method:** {}", spec.here)),
    )?;
    let Some(record) = record else {
        write!(
            text,
            "\nNot measured yet: `glimmer figure {name} --docs`.\n"
        )?;
        return Ok(());
    };
    write!(
        text,
        "\n![{}]({name}.svg)\n\n[data]({name}.csv) · [picture as PNG]({name}.png) · \
         [every repetition]({name}.json)\n\n",
        spec.title
    )?;
    write!(text, "{}", record.shape())?;
    for note in &record.notes {
        write!(text, "\nNote: {note}.\n")?;
    }
    write!(text, "\n<sub>{}</sub>\n", record.measured_on())?;
    Ok(())
}

/// Wraps a text at [`WIDTH`] columns; a longer word has a line of its own.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        let columns = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if columns <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed pages match the committed data.
    #[test]
    fn the_page_is_up_to_date() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        for (file, now) in files(docs).unwrap() {
            let committed = fs::read_to_string(docs.join(DIRECTORY).join(&file)).unwrap();
            assert!(
                committed == now,
                "docs/{DIRECTORY}/{file} is out of date: glimmer figure all --docs --redraw"
            );
        }
    }

    #[test]
    fn every_page_starts_with_its_claims() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        for (file, text) in files(docs).unwrap() {
            if !file.ends_with(".md") || file == INDEX {
                continue;
            }
            let first = text.split("\n## ").nth(1).unwrap();
            assert!(first.starts_with("Summary of the claims"), "{file}");
            assert!(first.contains("| holds"), "{file}: {first}");
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        let words = ["four"; 50].join(" ");
        let text = wrapped(&words);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.replace('\n', " "), words);
        assert_eq!(wrapped(&"x".repeat(200)).lines().count(), 1);
    }
}

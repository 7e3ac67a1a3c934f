//! The pages of the documentation that show the figures: an index, and one page per paper.

mod chart;
mod statements;
mod summary;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    Data, Figure, Kind, Record,
    catalogue::{self, Page},
    ledger::Ledger,
    output,
};
use statements::{Counts, Statement};
use summary::Claim;

/// Pages, pictures and data, in the directory of the documentation.
pub const DIRECTORY: &str = "figures";
/// The index of the pages, in that directory.
const INDEX: &str = "README.md";
/// Width of the text, in columns.
const WIDTH: usize = 100;

const INTRODUCTION: &str = "\
# Figures

Five papers and reviews are read sentence by sentence here. Every statement about behaviour or cost
has a row in the ledger of its paper, and a verdict by one rule for all, from the paper's number and
our measurement. This page shows their headlines first, as they come out here, and then how many
statements have which verdict. The page of a source begins with what we do not reproduce, and why.

";

const PICTURE: &str = "
![MICA, Figure 10: throughput by system, dataset, skew and share of reads](mica-fig10.svg)

MICA's Figure 10 as it comes out here: one core and the kernel's sockets in place of 16 cores and no
kernel, and newer rivals. The hollow marks are a sixteenth of the paper's numbers.

## Verdicts on the papers

";

const OURS: &str = "
Claims of ours are about what this project adds to the papers, such as `auto` over a paper's formula
or the packet program over memcached. They have bounds of their own and are in no sum above. The
median decides, unless the claim says otherwise, and the range over the repetitions is beside it: a
claim may hold although a repetition is on the other side of its bound.

";

const EXPLANATION: &str = "
## The rule

| verdict | when |
| --- | --- |
| reproduced | the direction is the paper's, and at least 0.8 of the effect is there |
| weaker | the direction is the paper's in every repetition, and less of the effect is there |
| not reproduced | there is no difference in some repetition, or one the other way round |
| cannot be measured here | the row says what it would take, and what is known instead |
| not measured yet | it can be measured here, and the row says which measurement is missing |
| see there | the paper says it again elsewhere, and it counts there |

- A factor is compared on the logarithm: 0.8 of a factor of 10 is 6.3. Without a number of the
  paper, the direction decides. For *no difference*, our ratio has to lie between 0.8 and 1.25.
- A property with a limit, such as a loss of at most 1%, is judged by this limit as the paper states
  it: reproduced if the medians keep it, weaker if only some repetition does.
- An absolute number is reproduced if ours is at least 0.8 of it, or for a cost at most 1.25 times.
  Machines differ by a decade, so such a row says little about the design.
- A trend (*rises*, *falls*) is reproduced if each number lies beyond the one before it, weaker if
  only the last lies beyond the first, and not reproduced if the last does not, by the medians or in
  some repetition.
- Our number is computed from the medians of the figure's data. `(2.1..2.5 of 3)` is the range of
  the same formula over each of three repetitions. None is shown if a system lacks a value in
  some repetition, as it did not sustain the load, and the record is too old to tell in which. The
  ledgers
  (`crates/figures/src/ledger/*.toml`) have the formulas. A formula consists of places in the data,
  quotients, differences and extremes. It has no numbers, so no figure can move a verdict.
- Within a repetition the systems run in turn. Not in turn are sizes of keys in `formica` and sets
  of items in `mica-fig10`. Numbers of threads in `memc3-fig5` and `memc3-fig6-7`, and mixes in the
  figures of tables alone, were not when these data were measured, and are in turn from the next run
  on. Ranges of rows that compare these say less. Figures with fewer than five repetitions are to be
  measured again.
- memcached is told to execute the 32 requests that a connection has in flight in one turn (`-R`),
  from the next run of each figure on. The data here have its default of 20, with which it takes two
  turns for them ([what that costs](../results.md#servers-side-by-side)).
- A percentile of a live server is shown where at least 1,000 requests of each repetition lie above
  it.
- *Simulated* is what servers in virtual time do, with costs that were measured on our server. It is
  no promise for a live one: where both exist, both have a row.

## How to read a page

- Absolute numbers belong to the machine that is named below each figure. Compare shapes with the
  paper: which system wins, by roughly what factor, and where a curve bends.
- Hollow marks are numbers that the paper states in its text or tables. None is read off a plot. The
  caption below each picture says which numbers they are and what the error bars mean.
- `NOISY` below a figure means that a reference measurement, random reads of memory, changed by more
  than 10% between repetitions. The machines that measured these pages are virtual and share caches
  and memory with others, so the reference changes even while they run nothing else. Trust the
  ratios of such a figure and not its absolute numbers.

## How to measure the figures

<!-- run: arguments it takes hours -->
```console
$ glimmer figure list                  # every figure, and what it needs
$ glimmer figure mica-fig10            # one figure, into ./figures
$ glimmer figure all --docs            # all figures, and these pages
$ glimmer figure all --docs --redraw   # these pages again, from the committed data
```

The command fails if a verdict is worse than the one in the record that it replaces, and not because
a statement is not reproduced. A figure that the machine cannot measure is left out, with a sentence
that says why. [CONTRIBUTING.md](../../CONTRIBUTING.md#adding-a-figure) says how to add a figure.
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
    let pages = catalogue::pages();
    let figures = |page: &Page| records(page, &directory);
    let all = pages.iter().map(figures).collect::<Result<Vec<_>>>()?;
    let mut files = Vec::new();
    let (mut headlines, mut counts, mut ours) = (String::new(), String::new(), String::new());
    for (page, records) in pages.iter().zip(&all) {
        let claims = claims(records);
        let ledger = Ledger::of(page.name);
        let statements = ledger.as_ref().map(|ledger| judged(ledger, &all));
        if let Some(statements) = &statements {
            headlines.push_str(&summary::headlines(page, statements));
            counts.push_str(&summary::counts_row(page, statements));
        }
        if !claims.is_empty() {
            ours.push_str(&summary::ours_row(page, &claims));
        }
        let ledger = ledger.as_ref().zip(statements.as_deref());
        files.push((
            format!("{}.md", page.name),
            text(page, records, ledger, &claims)?,
        ));
    }
    let index = [
        INTRODUCTION,
        summary::HEADLINES,
        &headlines,
        PICTURE,
        &summary::counts_head(),
        &counts,
        OURS,
        summary::OURS_HEAD,
        &ours,
        EXPLANATION,
    ];
    files.push((INDEX.to_owned(), index.concat()));
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

/// The statements of a paper, judged by the records of all pages.
fn judged<'a>(ledger: &'a Ledger, all: &[Records]) -> Vec<Statement<'a>> {
    let find = |name: &str| {
        let mut figures = all.iter().flatten();
        figures.find(|(figure, _)| figure.spec().name == name)
    };
    let data = |name: &str| -> Option<&Data> {
        let (figure, record) = find(name)?;
        let record = record.as_ref()?;
        record.proves(figure.spec().kind).then_some(&record.data)
    };
    let is_simulated =
        |name: &str| find(name).is_some_and(|(figure, _)| figure.spec().kind == Kind::Simulated);
    statements::judged(ledger, data, is_simulated)
}

fn claims(records: &Records) -> Vec<Claim<'_>> {
    let measured = records.iter().filter_map(|(_, record)| record.as_ref());
    measured.flat_map(Claim::of).collect()
}

fn text(
    page: &Page,
    records: &Records,
    ledger: Option<(&Ledger, &[Statement<'_>])>,
    claims: &[Claim<'_>],
) -> Result<String> {
    let mut text = format!("# {}\n\n{}\n", page.title, wrapped(page.about));
    text.push_str("\n[How to read this page](README.md#how-to-read-a-page)\n");
    if let Some((ledger, statements)) = ledger {
        let heads = statements::COUNTED;
        let cells = Counts::of(statements).cells();
        let line = " --- |".repeat(6);
        write!(text, "\n## Verdicts\n\n| {heads} |\n|{line}\n| {cells} |\n")?;
        let page_of = |figure: &str| {
            let is_its = |page: &&Page| page.figures.iter().any(|it| it.spec().name == figure);
            let other = catalogue::pages();
            let other = other
                .iter()
                .find(is_its)
                .map_or(page.name, |page| page.name);
            match other == page.name {
                true => format!("#{figure}"),
                false => format!("{other}.md#{figure}"),
            }
        };
        text.push_str(&statements::text(ledger, statements, &page_of));
    }
    if !claims.is_empty() {
        text.push_str("\n## Claims of ours\n\n");
        text.push_str(&summary::table(claims));
    }
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
    text.push_str(&record.tables());
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
    fn the_page_of_a_paper_starts_with_what_contradicts_us() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        let files = files(docs).unwrap();
        let mut papers = 0;
        for (file, text) in &files {
            let page = file.strip_suffix(".md").unwrap_or_default();
            let Some(ledger) = Ledger::of(page) else {
                continue;
            };
            let heads: Vec<&str> = text.split("\n## ").skip(1).collect();
            assert!(heads[0].starts_with("Verdicts"), "{file}");
            assert!(heads[1].starts_with("Where we find less"), "{file}");
            for claim in ledger.claims() {
                assert!(text.contains(&format!("| {} | ", claim.id)), "{}", claim.id);
            }
            papers += 1;
        }
        assert_eq!(papers, 5);
        let (_, index) = files.iter().find(|(file, _)| file == INDEX).unwrap();
        let first = index.split("| --- |").next().unwrap();
        assert!(first.contains("| source | what it states |"), "{first}");
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

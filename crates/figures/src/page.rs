//! The page of the documentation that shows every figure.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result};

use crate::{Figure, catalogue, output};

/// The page, in the directory of the documentation.
pub const PAGE: &str = "figures.md";
/// Pictures and data, in the same directory.
pub const FILES: &str = "figures";

const INTRODUCTION: &str = "\
# Figures

These are the figures and tables of the papers that this project builds on, measured with this
code. One command writes this page:

```console
$ glimmer figure all --docs
```

Each figure comes with what the paper concludes from it, our picture, the paper's numbers beside
ours, and a verdict on every claim. A claim that does not hold fails the command. The verdict names
the bound that decided it. That bound is lower than the paper's number where the machine, the client
or the question differs from the paper's.

Absolute numbers belong to the machine that is named below each figure. Compare the shapes with the
papers: who wins, by roughly what factor, and where a curve bends. Hollow marks are numbers that the
paper states in its text or tables; none is read off a plot. The caption below each picture says
which numbers they are and what the error bars mean.

`NOISY` below a figure means that a reference measurement, random reads of memory, changed by more
than 10% between repetitions. The machines that measured this page are virtual and share caches and
memory with others, so the reference changes even while they run nothing else. Each repetition
measures everything that a claim compares, one after the other, so trust the ratios of such a figure
and not its absolute numbers.

`glimmer figure NAME` measures one figure, and `glimmer figure list` names them all.
";

/// Writes the page for the records that lie in `docs`.
pub fn write(docs: &Path) -> Result<()> {
    let file = docs.join(PAGE);
    fs::write(&file, text(docs)?).with_context(|| format!("writing {}", file.display()))
}

/// The page for the records that lie in `docs`.
pub fn text(docs: &Path) -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for figure in catalogue::all() {
        section(figure, docs, &mut page)?;
    }
    Ok(page)
}

fn section(figure: &dyn Figure, docs: &Path, page: &mut String) -> Result<()> {
    let spec = figure.spec();
    let name = spec.name;
    write!(
        page,
        "\n## {}\n\n`{name}`: {}.\n\n**The paper:** {}\n\n**Here:** {}\n",
        spec.title, spec.source, spec.claim, spec.here
    )?;
    let Some(mut record) = output::read(name, &docs.join(FILES))? else {
        write!(
            page,
            "\nNot measured yet: `glimmer figure {name} --docs`.\n"
        )?;
        return Ok(());
    };
    record.judge(figure);
    write!(
        page,
        "\n![{}]({FILES}/{name}.svg)\n\n[data]({FILES}/{name}.csv) · [picture as PNG]({FILES}/{name}.png) · [every repetition]({FILES}/{name}.json)\n\n",
        spec.title
    )?;
    write!(page, "{}", record.shape())?;
    for note in &record.notes {
        write!(page, "\nNote: {note}.\n")?;
    }
    write!(page, "\n<sub>{}</sub>\n", record.measured_on())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is committed is what the committed data gives.
    #[test]
    fn the_page_is_up_to_date() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        let committed = fs::read_to_string(docs.join(PAGE)).unwrap();
        let now = text(docs).unwrap();
        assert!(
            committed == now,
            "docs/{PAGE} is out of date: glimmer figure all --docs --redraw"
        );
    }
}

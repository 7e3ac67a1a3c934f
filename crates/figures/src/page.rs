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

The figures and tables of the papers that this project builds on, measured with this code. Everything on this page is written by

```console
$ glimmer figure all --docs
```

For each figure: what the paper concludes from it, our picture, the paper's numbers beside ours, and a verdict on every claim. A claim that does not hold
fails the command. What it is held against stands behind the verdict: less than the paper's number where the machine, the other end or the question is another. Absolute numbers are those of the machine named below each figure; what is compared with the papers is the shape: who wins, by
roughly what factor, and where a curve bends. Hollow marks are numbers that the paper's text or tables state, never read off its plots; below each picture stands
which, and what its error bars are. `glimmer figure NAME` measures one of them,
`glimmer figure list` names them all.
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

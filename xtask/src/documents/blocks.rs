//! The blocks of commands in a document, and what a hidden comment before a block says about it.

use anyhow::{Context as _, bail};
use std::ops::RangeInclusive;

/// What a marker begins with. It is a comment of Markdown, in the lines before the block.
const MARKER: &str = "<!-- run:";

/// What a clause of a marker begins with.
const WORDS: &[&str] = &[
    "arguments",
    "before",
    "columns",
    "fails",
    "file",
    "more",
    "numbers",
    "quick",
    "root",
    "server",
    "skip",
    "status",
];

/// A block with commands, or with what a file of the reader has.
#[derive(Debug, Default)]
pub struct Block {
    /// The line of its first fence, from 1.
    pub line: usize,
    pub marker: Marker,
    pub steps: Vec<Step>,
    /// The lines of a block that is a file (`file NAME`).
    pub file: Vec<String>,
}

/// A command, and the output that the document shows after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub command: String,
    pub output: Vec<String>,
}

/// What is done before a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Before {
    /// A command that makes what the reader has.
    Command(String),
    /// A server with these arguments, unless the document starts one itself.
    Server(String),
}

/// How a block is run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// Why all or some commands are not run.
    pub skipped: Vec<(Option<usize>, String)>,
    /// Why only their arguments are checked.
    pub checked: Vec<(Option<usize>, String)>,
    /// What makes them quick: options, each of which replaces that of the command or is added.
    pub quick: Vec<(Option<usize>, String)>,
    /// What is done before, in this order.
    pub before: Vec<Before>,
    /// The name of the file that the block is.
    pub file: Option<String>,
    /// Numbers in the output differ from run to run.
    pub numbers_vary: bool,
    /// The commands need root of the machine, which that of a namespace is not.
    pub is_for_root: bool,
    /// Only these columns of the output are compared, from 1.
    pub columns: Option<RangeInclusive<usize>>,
    /// The output may have more lines than are shown.
    pub has_more: bool,
    /// The last command ends with an error.
    pub fails: bool,
    /// All commands end with this status.
    pub status: Option<u8>,
}

impl Marker {
    /// Reads what stands between `<!-- run:` and `-->`.
    fn read(text: &str) -> anyhow::Result<Marker> {
        let mut marker = Marker::default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let mut clauses: Vec<String> = Vec::new();
        for part in text.split("; ") {
            // The shell has semicolons, too.
            let word = part.split(' ').next().unwrap_or_default();
            match clauses.last_mut() {
                Some(last) if !WORDS.contains(&word) => *last = format!("{last}; {part}"),
                _ => clauses.push(part.to_owned()),
            }
        }
        for clause in clauses {
            let (word, rest) = clause.split_once(' ').unwrap_or((&clause, ""));
            match word {
                "skip" => marker.skipped.push(numbered(rest)?),
                "arguments" => marker.checked.push(numbered(rest)?),
                "quick" => marker.quick.push(numbered(rest)?),
                "server" => marker.before.push(Before::Server(rest.to_owned())),
                "before" => marker.before.push(Before::Command(rest.to_owned())),
                "file" => marker.file = Some(rest.to_owned()),
                "fails" => marker.fails = true,
                "status" => marker.status = Some(rest.parse()?),
                "root" => marker.is_for_root = true,
                "more" if rest == "lines" => marker.has_more = true,
                "numbers" if rest == "vary" => marker.numbers_vary = true,
                "columns" => {
                    let (from, to) = rest.split_once(" to ").context("columns A to B")?;
                    marker.columns = Some(from.parse()?..=to.parse()?);
                }
                _ => bail!("{clause:?} is not known: CONTRIBUTING.md lists what a marker may say"),
            }
        }
        Ok(marker)
    }

    /// Why this command, counted from 1, is not run.
    pub fn reason(&self, number: usize) -> Option<&str> {
        of(&self.skipped, number).next()
    }

    /// Why only the arguments of this command are checked.
    pub fn check(&self, number: usize) -> Option<&str> {
        of(&self.checked, number).next()
    }

    /// The command as the test runs it.
    pub fn shortened(&self, number: usize, command: &str) -> String {
        if self.check(number).is_some() {
            return set(command, "--help");
        }
        let options = of(&self.quick, number);
        options.fold(command.to_owned(), |command, options| {
            set(&command, options)
        })
    }
}

/// What is said about this command.
fn of(said: &[(Option<usize>, String)], number: usize) -> impl Iterator<Item = &str> {
    let is_meant = move |of: &Option<usize>| of.is_none_or(|it| it == number);
    let said = said.iter().filter(move |(of, _)| is_meant(of));
    said.map(|(_, text)| text.as_str())
}

/// `N: TEXT` for the command N, or `TEXT` for all of them.
fn numbered(text: &str) -> anyhow::Result<(Option<usize>, String)> {
    let (number, rest) = match text.split_once(": ") {
        Some((number, rest)) if number.parse::<usize>().is_ok() => (number.parse().ok(), rest),
        _ => (None, text),
    };
    if rest.is_empty() {
        bail!("a reason or options have to follow");
    }
    Ok((number, rest.to_owned()))
}

/// The command with these options: each value replaces that of the same option, and an option that
/// the command lacks comes at its end, before a comment.
fn set(command: &str, options: &str) -> String {
    let (mut command, comment) = match command.find(" # ") {
        Some(place) => command.split_at(place),
        None => (command, ""),
    };
    command = command.trim_end();
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let mut options = options.split(' ').peekable();
    while let Some(option) = options.next() {
        let value = options.next_if(|next| !next.starts_with('-'));
        let place = words.iter().position(|word| word.trim() == option);
        match (place, value) {
            (Some(place), Some(value)) => words[place + 1] = value.to_owned(),
            (Some(_), None) => {}
            (None, value) => {
                words.push(option.to_owned());
                words.extend(value.map(str::to_owned));
            }
        }
    }
    words.join(" ") + comment
}

/// The blocks of a document that show commands or files, in order.
pub fn read(document: &str) -> anyhow::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let (mut marker, mut marked_at) = (None, 0);
    let mut lines = document.lines().enumerate();
    while let Some((place, line)) = lines.next() {
        let (line, number) = (line.trim_start(), place + 1);
        if let Some(begun) = line.strip_prefix(MARKER) {
            let mut text = begun.to_owned();
            while !text.contains("-->") {
                let (_, more) = lines.next().context("a marker ends with -->")?;
                text = format!("{text} {more}");
            }
            let text = text.split("-->").next().unwrap_or_default();
            let read = Marker::read(text.trim()).with_context(|| format!("line {number}"))?;
            (marker, marked_at) = (Some(read), number);
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            if !line.is_empty() && marker.is_some() {
                bail!("line {marked_at}: no block follows this marker");
            }
            continue;
        };
        let marker: Marker = marker.take().unwrap_or_default();
        let indented = document
            .lines()
            .nth(place)
            .map_or(0, |it| it.len() - line.len());
        let inside = lines.by_ref().map(|(_, line)| line);
        let inside = inside.take_while(|line| line.trim_start() != "```");
        let inside: Vec<&str> = inside
            .map(|line| line.get(indented..).unwrap_or(""))
            .collect();
        let mut block = Block {
            line: number,
            marker,
            ..Block::default()
        };
        match language {
            "console" => block.steps = steps(&inside).with_context(|| format!("line {number}"))?,
            "" => bail!("line {number}: say what the block is, `console` for commands"),
            "text" if inside.iter().any(|line| prompted(line).is_some()) => {
                bail!("line {number}: commands are in a block of `console`, so that they are run")
            }
            _ if block.marker.file.is_some() => {
                block.file = inside.iter().map(|&line| line.to_owned()).collect();
            }
            _ => continue,
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// The command after a prompt.
fn prompted(line: &str) -> Option<&str> {
    line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "))
}

/// The commands of a block, each after a prompt, and the lines of output between them.
fn steps(lines: &[&str]) -> anyhow::Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_continued = false;
    for line in lines {
        match (prompted(line), steps.last_mut()) {
            (_, Some(step)) if is_continued => {
                step.command += "\n";
                step.command += line;
            }
            (Some(command), _) => steps.push(Step {
                command: command.to_owned(),
                output: Vec::new(),
            }),
            (None, Some(step)) => step.output.push((*line).to_owned()),
            (None, None) => bail!("a block of commands begins with `$ ` or, for root, `# `"),
        }
        is_continued = line.ends_with('\\');
    }
    for step in &mut steps {
        // Empty lines between commands are no output.
        while step.output.last().is_some_and(String::is_empty) {
            step.output.pop();
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "Text\n\n<!-- run: quick 2: --seconds 0.1 --json; skip 1: needs\n\
        a network; numbers vary -->\n\n```console\n# curl x\n$ glimmer bench \\\n    -m 3 # all\n\
        it: 3\n\nends\n```\n\n```text\n+--+\n```\n";

    #[test]
    fn the_clauses_are_those_of_the_documentation() {
        let page = crate::process::repository().join("CONTRIBUTING.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("| clause | meaning |").unwrap();
        let rows = table.lines().skip(2);
        let rows = rows.map_while(|row| row.strip_prefix("| `"));
        let mut documented: Vec<&str> = rows
            .filter_map(|row| row.split([' ', '`']).next())
            .collect();
        documented.sort_unstable();
        assert_eq!(documented, WORDS);
    }

    #[test]
    fn a_marker_belongs_to_the_block_after_it() {
        let blocks = read(DOCUMENT).unwrap();
        let [block] = &blocks[..] else {
            panic!("{blocks:?}");
        };
        assert_eq!(block.line, 6);
        assert_eq!(block.marker.reason(1), Some("needs a network"));
        assert_eq!(block.marker.reason(2), None);
        assert!(block.marker.numbers_vary);
        assert_eq!(block.steps[0].command, "curl x");
        let step = &block.steps[1];
        assert_eq!(step.output, ["it: 3", "", "ends"]);
        let run = block.marker.shortened(2, &step.command);
        assert_eq!(run, "glimmer bench \\\n    -m 3 --seconds 0.1 --json # all");
    }

    #[test]
    fn an_option_replaces_that_of_the_command() {
        let set = |options| set("a --keys 3m --misses -m 64", options);
        assert_eq!(set("--keys 1k --misses"), "a --keys 1k --misses -m 64");
        assert_eq!(set("-m 8 --new"), "a --keys 3m --misses -m 8 --new");
    }

    #[test]
    fn mistakes_in_a_document_are_errors() {
        let mistakes = [
            "```\n$ x\n```\n",
            "```text\na\n# x\n```\n",
            "```console\nx\n```\n",
            "<!-- run: quickly -->\n```console\n$ x\n```\n",
            "<!-- run: skip -->\n```console\n$ x\n```\n",
            "<!-- run: fails -->\ntext\n",
        ];
        for document in mistakes {
            assert!(read(document).is_err(), "{document}");
        }
    }
}

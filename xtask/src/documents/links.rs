//! Links of documents to one another, and files that they name: the file is there, and so is the
//! place in it.

use super::{pages, peer};
use crate::process;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where the links of a text lead, outside of blocks of code.
fn targets(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    });
    let after = prose.flat_map(|line| line.split("](").skip(1));
    after.filter_map(|rest| rest.split(')').next()).collect()
}

/// The names that links to places in a text may have: those of its headings, as GitHub makes them,
/// and those that the text gives.
fn places(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let named = text.split("<a id=\"").skip(1);
    let named = named.filter_map(|rest| rest.split('"').next());
    headings
        .map(name_of)
        .chain(named.map(str::to_owned))
        .collect()
}

fn name_of(heading: &str) -> String {
    let mut title = heading.trim_start_matches('#').trim().to_lowercase();
    // Of a link, the text is left.
    while let (Some(from), Some(to)) = (title.find("]("), title.find(')')) {
        title.replace_range(from..=to, "");
    }
    let kept = title.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
        _ => None,
    });
    kept.collect()
}

/// A path without `..`, relative to the repository.
fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let folder = page.parent().unwrap_or(Path::new(""));
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// What is wrong with a link of a page, which lies in the repository.
fn fault(page: &Path, target: &str) -> Option<String> {
    let (file, place) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => resolved(page, file),
    };
    let found = process::repository().join(&path);
    if !found.exists() {
        return Some(format!("{}: {target} is not there", page.display()));
    }
    let is_page = path.extension().is_some_and(|it| it == "md");
    if place.is_empty() || !is_page {
        return None;
    }
    let is_there = fs::read_to_string(found).is_ok_and(|text| places(&text).contains(place));
    (!is_there).then(|| format!("{}: {target} has no such place", page.display()))
}

#[test]
fn links_lead_somewhere() {
    let (mut faults, mut links) = (Vec::new(), 0);
    // The claims quote other pages, links and all.
    let mut pages = pages().unwrap();
    pages.retain(|page| page != Path::new(peer::DOCUMENT));
    for page in pages {
        let text = fs::read_to_string(process::repository().join(&page)).unwrap();
        let targets = targets(&text).into_iter();
        let inside = targets.filter(|target| !target.contains("://"));
        for target in inside {
            links += 1;
            faults.extend(fault(&page, target));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(links > 500, "{links} links");
}

/// The README says of docs/README.md that it lists all documents.
#[test]
fn every_document_is_listed() {
    let list = fs::read_to_string(process::repository().join("docs/README.md")).unwrap();
    let listed: Vec<&str> = targets(&list);
    let documents = pages().unwrap().into_iter();
    let documents = documents.filter(|page| page.parent() == Some(Path::new("docs")));
    let names = documents.filter_map(|page| Some(page.file_name()?.to_str()?.to_owned()));
    for name in names.filter(|name| name != "README.md") {
        assert!(listed.contains(&&*name), "docs/README.md lacks {name}");
    }
}

/// Files that a text names in full, in the folders of the repository that have code.
fn files(text: &str) -> Vec<&str> {
    const FOLDERS: [&str; 5] = ["accel/", "contrib/", "crates/", "fuzz/", "xtask/"];
    let code = text.split('`').skip(1).step_by(2);
    let paths = code.filter(|code| FOLDERS.iter().any(|folder| code.starts_with(folder)));
    paths
        .filter(|path| !path.contains(['*', ' ', '\n']))
        .collect()
}

#[test]
fn files_that_pages_name_are_there() {
    let mut named = 0;
    for page in pages().unwrap() {
        let text = fs::read_to_string(process::repository().join(&page)).unwrap();
        for file in files(&text) {
            named += 1;
            let is_there = process::repository().join(file).exists();
            assert!(is_there, "{}: there is no {file}", page.display());
        }
    }
    assert!(named > 300, "{named} files");
    assert_eq!(
        files("`crates/a.rs` `b.rs` `crates/*.rs` `xtask/c`"),
        ["crates/a.rs", "xtask/c"]
    );
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = Path::new("docs/flags.md");
    for right in [
        "flags.md#log",
        "#log",
        "../README.md",
        "figures/mica.md#mica-fig10",
    ] {
        assert_eq!(fault(page, right), None);
    }
    for wrong in ["flag.md", "flags.md#logs", "#logs", "../docs.md"] {
        assert!(fault(page, wrong).is_some(), "{wrong}");
    }
    assert_eq!(
        name_of("## `-m` and [its limit](x.md), so"),
        "-m-and-its-limit-so"
    );
    assert_eq!(
        targets("a [b](c.md#d) [e](f)\n```\n[g](h)\n```\n"),
        ["c.md#d", "f"]
    );
}

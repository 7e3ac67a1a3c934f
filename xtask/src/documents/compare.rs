//! Compares what a document shows with what a command has printed.

use super::blocks::Marker;

/// What a document writes in place of any lines, or at the end of a line in place of its rest.
const LEFT_OUT: &str = "...";
/// What a table shows in place of a number that nothing was measured for.
const NO_NUMBER: &str = "–";

/// Says where the output differs, as two lines: what the document shows, and what came.
pub fn difference(marker: &Marker, shown: &[String], printed: &str) -> Option<String> {
    let mut printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let mut shown: Vec<&str> = shown.iter().map(|line| line.trim_end()).collect();
    if marker.numbers_vary {
        // How many lines of a kind there are is a number, too.
        printed.dedup_by_key(|line| pattern(line));
        shown.dedup_by_key(|line| pattern(line));
    }
    let mut printed = trim(&printed).iter();
    let mut shown = trim(&shown).iter();
    while let Some(&line) = shown.next() {
        if line.trim() == LEFT_OUT {
            let &next = shown.clone().next()?;
            // What is left out ends before the line that follows it in the document.
            for &came in printed.clone() {
                if is_same(marker, next, came) {
                    break;
                }
                printed.next();
            }
            continue;
        }
        if marker.has_more {
            let mut rest = printed.clone();
            if rest.any(|came| is_same(marker, line, came)) {
                printed = rest;
                continue;
            }
        }
        let came = printed.next().copied();
        if came.is_none_or(|came| !is_same(marker, line, came)) {
            let came = came.unwrap_or("(nothing more)");
            return Some(format!(
                "    the document: {line}\n    the output:   {came}"
            ));
        }
    }
    let came = printed.next().filter(|_| !marker.has_more)?;
    Some(format!(
        "    the document: (nothing more)\n    the output:   {came}"
    ))
}

/// The lines between empty ones at the beginning and the end.
fn trim<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let is_empty = |line: &&str| line.trim().is_empty();
    let from = lines.iter().take_while(|line| is_empty(line)).count();
    let to = lines.iter().rposition(|line| !is_empty(line));
    lines
        .get(from..to.map_or(from, |last| last + 1))
        .unwrap_or_default()
}

fn is_same(marker: &Marker, shown: &str, came: &str) -> bool {
    let [shown, came] = [shown, came].map(|line| match &marker.columns {
        None => line.to_owned(),
        Some(columns) => {
            let length = columns.end() + 1 - columns.start();
            line.chars()
                .skip(columns.start() - 1)
                .take(length)
                .collect()
        }
    });
    let [mut shown, mut came] = [shown, came].map(|line| match marker.numbers_vary {
        true => pattern(&line),
        false => line,
    });
    if let Some(begun) = shown.strip_suffix(LEFT_OUT) {
        came.truncate(came.floor_char_boundary(begun.len()));
        shown.truncate(begun.len());
    }
    shown == came
}

/// The line with `#` in place of each number with its unit, and each run of spaces, dashes, and
/// bars of a chart as one: a table is as wide as its numbers.
fn pattern(line: &str) -> String {
    let mut pattern = String::new();
    for word in line.split_whitespace() {
        let word = word.trim_start_matches(|c: char| ('\u{2581}'..='\u{2588}').contains(&c));
        let mut plain = String::new();
        let mut characters = word.chars().peekable();
        while let Some(c) = characters.next() {
            if c.is_ascii_digit() {
                let is_number = |c: &char| c.is_ascii_digit() || ".,".contains(*c);
                let mut last = c;
                while let Some(c) = characters.next_if(is_number) {
                    last = c;
                }
                plain.push('#');
                // Punctuation after a number is no part of it.
                if !last.is_ascii_digit() {
                    plain.push(last);
                }
            } else if word == NO_NUMBER {
                plain.push('#');
            } else if c != '-' || !plain.ends_with('-') {
                plain.push(c);
            }
        }
        // A rate below 10,000 has its unit without a space.
        if plain.trim_end_matches([',', ':']) == "#/s" {
            plain = plain.replacen("#/s", "#", 1);
        }
        let is_unit = ["µs", "ms", "s", "ns", "k/s", "M/s", "/s", "KiB", "MiB"]
            .iter()
            .any(|unit| plain.trim_end_matches([',', ':']) == *unit);
        if is_unit && pattern.ends_with('#') {
            let end = plain.trim_start_matches(|c| !",:".contains(c));
            pattern += end;
            continue;
        }
        if !plain.is_empty() {
            if !pattern.is_empty() {
                pattern.push(' ');
            }
            pattern += &plain;
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(marker: &Marker, shown: &str, printed: &str) -> bool {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        difference(marker, &shown, printed).is_some()
    }

    #[test]
    fn lines_have_to_be_the_same() {
        let exact = Marker::default();
        assert!(!differs(&exact, "a\nb", "a  \r\nb\n\n"));
        assert!(differs(&exact, "a\nb", "a\nc"));
        assert!(differs(&exact, "a", "a\nb"));
        assert!(differs(&exact, "a\nb", "a"));
    }

    #[test]
    fn dots_stand_for_what_is_left_out() {
        let exact = Marker::default();
        assert!(!differs(&exact, "a\n...", "a\nb\nc"));
        assert!(!differs(&exact, "a\n...\nd", "a\nb\nc\nd"));
        assert!(!differs(&exact, "begins...", "begins and goes on"));
        assert!(differs(&exact, "a\n...\ne", "a\nb\nc\nd"));
        assert!(differs(&exact, "begins...", "began"));
    }

    #[test]
    fn numbers_may_vary_and_nothing_else() {
        let numbers = Marker {
            numbers_vary: true,
            ..Marker::default()
        };
        let shown = "2 operations in 3.0 s: 1.01 M/s, p99 9077 µs\n| all |  31 ms |\n|----|--:|";
        let same = "17 operations in 0.1 s: 300 k/s, p99 9.1 ms\n| all | 3 µs |\n|--------|---:|";
        assert!(!differs(&numbers, shown, same));
        assert!(!differs(
            &numbers,
            shown,
            &same.replace("300 k/s", "9824/s")
        ));
        assert!(!differs(&numbers, shown, &same.replace("3 µs", "–")));
        assert!(differs(&numbers, shown, &same.replace("in", "after")));
        assert!(differs(&Marker::default(), shown, same));
    }

    #[test]
    fn there_may_be_more_lines() {
        let some = Marker {
            has_more: true,
            ..Marker::default()
        };
        assert!(!differs(&some, "a\nc", "0\na\nb\nc\nd"));
        assert!(differs(&some, "c\na", "a\nb\nc"));
    }

    #[test]
    fn columns_may_be_chosen() {
        let names = Marker {
            columns: Some(8..=11),
            ..Marker::default()
        };
        assert!(!differs(&names, "ok     name  of a", "FAULT  name  of b"));
        assert!(differs(&names, "ok     name  of a", "ok     mane  of a"));
    }
}

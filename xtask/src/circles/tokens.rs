//! Splits Rust source into words and marks, without comments, strings and code for tests.

/// A word, `::`, or any other single character that is not a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(String),
    PathSeparator,
    Mark(char),
}

impl Token {
    pub fn is_mark(&self, mark: char) -> bool {
        *self == Token::Mark(mark)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text == word)
    }
}

/// The tokens of a source file.
pub fn read(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(taken) = string(rest).or_else(|| character(rest)) {
            taken
        } else if is_of_word(first) {
            let taken = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..taken].into()));
            taken
        } else if rest.starts_with("::") {
            tokens.push(Token::PathSeparator);
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of the comment at the start of `text`. Comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match (text[at..].find("/*"), text[at..].find("*/")) {
            (Some(open), Some(close)) if open < close => {
                depth += 1;
                at += open + 2;
            }
            (_, Some(close)) => {
                depth -= 1;
                at += close + 2;
                if depth == 0 {
                    return at;
                }
            }
            (_, None) => return text.len(),
        }
    }
}

/// Length of the string, raw or not, at the start of `text`.
fn string(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - body.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = body.strip_prefix('r') {
        let quoted = raw.trim_start_matches('#');
        let hashes = &raw[..raw.len() - quoted.len()];
        let end = format!("\"{hashes}");
        let inner = quoted.strip_prefix('"')?;
        let begin = text.len() - inner.len();
        return Some(begin + inner.find(&end).map_or(inner.len(), |at| at + end.len()));
    }
    let inner = body.strip_prefix('"')?;
    let begin = text.len() - inner.len();
    Some(begin + quoted_bytes(inner, '"').unwrap_or(inner.len()))
}

/// Length of the character literal at the start of `text`. A lifetime is not one.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('b').unwrap_or(text);
    let inner = body.strip_prefix('\'')?;
    let begin = text.len() - inner.len();
    let is_character = inner.starts_with('\\') || inner.chars().nth(1) == Some('\'');
    let bytes = quoted_bytes(inner, '\'').filter(|_| is_character)?;
    Some(begin + bytes)
}

/// Length up to and including the closing quote of a literal.
fn quoted_bytes(inner: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        let word = |token| match token {
            Token::Word(word) => Some(word),
            _ => None,
        };
        read(source).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let source = r####"
            a // use crate::comment;
            /* use crate::outer; /* nested */ still */ b
            "use crate::text; \" more" c
            r#"use crate::raw; " more"# d b"bytes" e '"' f '\'' g b'x' h
            'lifetime
        "####;
        let expected = ["a", "b", "c", "d", "e", "f", "g", "h", "lifetime"];
        assert_eq!(words(source), expected);
    }

    #[test]
    fn paths_are_words_and_separators() {
        let tokens = read("crate::a");
        let expected = [
            Token::Word("crate".into()),
            Token::PathSeparator,
            Token::Word("a".into()),
        ];
        assert_eq!(tokens, expected);
    }
}

//! The imports of one file from its own crate.

use super::tokens::{self, Token};

/// A module's path within its crate; empty for the crate's root.
pub type Path = Vec<String>;

/// The imports and names of a file.
#[derive(Debug, Default)]
pub struct Imports {
    /// Paths that the file uses, from the crate's root.
    pub paths: Vec<Path>,
    /// Names that its `use` items bring into scope, with their paths.
    pub names: Vec<(String, Path)>,
    /// Child modules that exist only for tests.
    pub test_modules: Vec<String>,
}

/// Parses the source of the file of the module `module`.
pub fn read(source: &str, module: &[String]) -> Imports {
    let mut reader = Reader {
        tokens: tokens::read(source),
        at: 0,
        module: module.to_vec(),
        inline: Vec::new(),
        imports: Imports::default(),
    };
    reader.read();
    reader.imports
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// The current module, which may be an inline one.
    module: Path,
    /// For each open brace, whether it belongs to an inline module.
    inline: Vec<bool>,
    imports: Imports,
}

impl Reader {
    fn read(&mut self) {
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Mark('#') => self.attribute(),
                Token::Mark('{') => self.open(false),
                Token::Mark('}') => self.close(),
                Token::Word(word) => match word.as_str() {
                    "use" => self.use_item(),
                    "mod" => self.mod_item(),
                    "crate" | "super" | "self" if self.is_path() => self.path(),
                    // The words in `pub(in path)` and in paths of other crates do not start a path
                    // of this crate.
                    _ => self.skip_foreign_path(),
                },
                _ => self.at += 1,
            }
        }
    }

    fn open(&mut self, is_module: bool) {
        self.inline.push(is_module);
        self.at += 1;
    }

    fn close(&mut self) {
        if self.inline.pop() == Some(true) {
            self.module.pop();
        }
        self.at += 1;
    }

    fn is_path(&self) -> bool {
        self.tokens.get(self.at + 1) == Some(&Token::PathSeparator)
    }

    fn skip_foreign_path(&mut self) {
        self.at += 1;
        while self.tokens.get(self.at) == Some(&Token::PathSeparator) {
            self.at += 1;
            if let Some(Token::Word(_)) = self.tokens.get(self.at) {
                self.at += 1;
            }
        }
    }

    /// Skips an attribute, and also the item after it if that exists only for tests.
    fn attribute(&mut self) {
        self.at += 1;
        if self.is_mark('!') {
            self.at += 1;
        }
        if !self.is_mark('[') {
            return;
        }
        let begin = self.at;
        let end = self.matching('[', ']');
        let is_word = |word: &str| self.tokens[begin..end].iter().any(|it| it.is_word(word));
        let is_for_tests = is_word("cfg") && is_word("test") && !self.negates_test(begin, end);
        self.at = end;
        if is_for_tests {
            self.skip_item();
        }
    }

    /// Whether an attribute contains `not(test)`.
    fn negates_test(&self, begin: usize, end: usize) -> bool {
        self.tokens[begin..end].windows(3).any(|three| {
            three[0].is_word("not") && three[1].is_mark('(') && three[2].is_word("test")
        })
    }

    fn skip_item(&mut self) {
        let mut last_two = [None, None];
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Mark('#') => {
                    self.at += 1;
                    self.at = self.matching('[', ']');
                    continue;
                }
                Token::Mark('{') => {
                    self.at = self.matching('{', '}');
                    return;
                }
                Token::Mark(';') => {
                    if let [Some(Token::Word(keyword)), Some(Token::Word(name))] = last_two
                        && keyword == "mod"
                    {
                        self.imports.test_modules.push(name);
                    }
                    self.at += 1;
                    return;
                }
                token => {
                    let [_, last] = last_two;
                    last_two = [last, Some(token.clone())];
                    self.at += 1;
                }
            }
        }
    }

    /// The position after the closing delimiter that matches the one at, or after, the current
    /// position.
    fn matching(&self, open: char, close: char) -> usize {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            if token.is_mark(open) {
                depth += 1;
            } else if token.is_mark(close) {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
        }
        self.tokens.len()
    }

    fn is_mark(&self, mark: char) -> bool {
        self.tokens.get(self.at).is_some_and(|it| it.is_mark(mark))
    }

    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn mod_item(&mut self) {
        self.at += 1;
        let Some(name) = self.word().map(String::from) else {
            return;
        };
        self.at += 1;
        if self.is_mark('{') {
            self.module.push(name);
            self.open(true);
        }
    }

    fn path(&mut self) {
        let mut path = Vec::new();
        while let Some(word) = self.word() {
            path.push(word.to_string());
            self.at += 1;
            if self.tokens.get(self.at) != Some(&Token::PathSeparator) {
                break;
            }
            self.at += 1;
        }
        if let Some(path) = self.absolute(&path) {
            self.imports.paths.push(path);
        }
    }

    fn use_item(&mut self) {
        self.at += 1;
        // Generic bounds contain `use<'a>`, which imports nothing.
        if !self.is_mark('<') {
            self.use_tree(&[]);
        }
    }

    fn use_tree(&mut self, prefix: &[String]) {
        let mut path = prefix.to_vec();
        loop {
            if self.is_mark('{') {
                self.at += 1;
                while !self.is_mark('}') && self.at < self.tokens.len() {
                    self.use_tree(&path);
                    if self.is_mark(',') {
                        self.at += 1;
                    }
                }
                self.at += 1;
                return;
            }
            if self.is_mark('*') {
                self.at += 1;
                self.enter(&path, None);
                return;
            }
            match self.word() {
                Some(word) => path.push(word.to_string()),
                // `::name` is another crate.
                None if self.tokens.get(self.at) == Some(&Token::PathSeparator) => {}
                None => {
                    self.at += 1;
                    return;
                }
            }
            if self.word().is_some() {
                self.at += 1;
            }
            if self.tokens.get(self.at) == Some(&Token::PathSeparator) {
                self.at += 1;
                continue;
            }
            break;
        }
        // `a::{self}` means `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.word() == Some("as") {
            self.at += 1;
            name = self.word().map(String::from);
            self.at += 1;
        }
        self.enter(&path, name);
    }

    fn enter(&mut self, path: &[String], name: Option<String>) {
        let Some(path) = self.absolute(path) else {
            return;
        };
        if let Some(name) = name.filter(|_| self.inline.is_empty()) {
            self.imports.names.push((name, path.clone()));
        }
        self.imports.paths.push(path);
    }

    /// The path from the crate's root. A path that begins with a name may start at a child module.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let (first, mut rest) = path.split_first()?;
        let mut absolute = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => self.module.clone(),
            "super" => {
                let mut module = self.module.clone();
                module.pop()?;
                while let Some((next, others)) = rest.split_first()
                    && next == "super"
                {
                    module.pop()?;
                    rest = others;
                }
                module
            }
            _ => {
                rest = path;
                self.module.clone()
            }
        };
        absolute.extend_from_slice(rest);
        Some(absolute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        let module = ["a".to_string(), "b".to_string()];
        let imports = read(source, &module);
        imports.paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn use_trees_are_opened() {
        let source = "use crate::c::{self, d::{E, F as G}, h::*}; use super::i::J;";
        let expected = ["c", "c::d::E", "c::d::F", "c::h", "a::i::J"];
        assert_eq!(paths(source), expected);
    }

    #[test]
    fn paths_in_code_count() {
        let source = "fn f() { let _ = crate::c::d(super::e::f::<crate::g::H>()); }";
        assert_eq!(paths(source), ["c::d", "a::e::f", "g::H"]);
    }

    #[test]
    fn an_inline_module_is_a_module() {
        let source = "mod inner { use super::super::c::D; } use super::e::F;";
        assert_eq!(paths(source), ["a::c::D", "a::e::F"]);
    }

    #[test]
    fn what_is_for_tests_does_not_count() {
        let source = "
            #[cfg(test)] use crate::c::D;
            #[cfg(all(test, not(loom)))]
            mod tests { use super::*; fn f() { crate::e::g() } }
            #[cfg(test)] mod model;
            #[cfg(not(test))] use crate::h::I;";
        assert_eq!(paths(source), ["h::I"]);
        assert_eq!(read(source, &[]).test_modules, ["model"]);
    }

    #[test]
    fn a_name_stands_for_a_path() {
        let source = "pub use c::D; use crate::e::F as G;";
        let names = read(source, &["a".to_string()]).names;
        let name = |name: &str, path: &[&str]| {
            let path: Path = path.iter().map(|part| part.to_string()).collect();
            (name.to_string(), path)
        };
        assert_eq!(names, [name("D", &["a", "c", "D"]), name("G", &["e", "F"])]);
    }
}

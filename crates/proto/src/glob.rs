//! Patterns as Redis matches keys against them: `*` stands for any bytes, `?` for one, `[abc]`,
//! `[^abc]` and `[a-z]` for one of a class, and a backslash takes the next byte as it is. A class
//! without an end takes the rest of the pattern.

/// A pattern, read once for any number of texts.
pub struct Pattern {
    parts: Box<[Part]>,
    /// Bytes of the shortest text that it fits.
    bytes_min: usize,
}

/// What a part of a pattern stands for.
enum Part {
    /// Any bytes.
    Star,
    /// Any byte.
    Any,
    /// This byte.
    Literal(u8),
    /// A byte of these.
    Class(Box<Class>),
}

/// A set of bytes: a bit for each.
#[derive(Default)]
struct Class([u64; 4]);

impl Pattern {
    /// Reads a pattern, in time and memory proportional to its length.
    pub fn new(pattern: &[u8]) -> Pattern {
        let (mut parts, mut rest) = (Vec::new(), pattern);
        while let [first, after @ ..] = rest {
            rest = after;
            let part = match (first, after) {
                (b'*', _) if matches!(parts.last(), Some(Part::Star)) => continue,
                (b'*', _) => Part::Star,
                (b'?', _) => Part::Any,
                (b'[', _) => {
                    let (class, after) = Class::read(after);
                    rest = after;
                    Part::Class(Box::new(class))
                }
                (b'\\', [literal, after @ ..]) => {
                    rest = after;
                    Part::Literal(*literal)
                }
                (literal, _) => Part::Literal(*literal),
            };
            parts.push(part);
        }
        let bytes_min = parts.iter().filter(|part| !part.is_star()).count();
        Pattern {
            parts: parts.into(),
            bytes_min,
        }
    }

    /// Whether it fits a text as a whole. Adds to `steps` how often a byte of the text was compared
    /// with a part of the pattern: at most the product of both lengths.
    pub fn fits(&self, text: &[u8], steps: &mut u64) -> bool {
        let (mut at, mut taken) = (0, 0);
        // Bytes that the parts from `at` on need at least.
        let mut needed = self.bytes_min;
        // The last star: where the pattern goes on after it, how much of the text it begins at, and
        // the bytes that are needed after it.
        let mut star = None;
        loop {
            *steps += 1;
            if needed > text.len() - taken {
                // The star would take more, and leave less.
                return false;
            }
            match self.parts.get(at) {
                Some(Part::Star) => {
                    at += 1;
                    if at == self.parts.len() {
                        return true;
                    }
                    star = Some((at, taken, needed));
                    continue;
                }
                None if taken == text.len() => return true,
                Some(part) if taken < text.len() && part.has(text[taken]) => {
                    (at, taken, needed) = (at + 1, taken + 1, needed - 1);
                    continue;
                }
                _ => {}
            }
            // The star takes one byte more.
            let Some((next, from, needed_after)) = star else {
                return false;
            };
            if from == text.len() {
                return false;
            }
            (at, taken, needed) = (next, from + 1, needed_after);
            star = Some((next, from + 1, needed_after));
        }
    }
}

impl Part {
    fn is_star(&self) -> bool {
        matches!(self, Part::Star)
    }

    /// Whether it stands for this byte.
    fn has(&self, byte: u8) -> bool {
        match self {
            Part::Star | Part::Any => true,
            Part::Literal(literal) => *literal == byte,
            Part::Class(class) => class.has(byte),
        }
    }
}

impl Class {
    /// Reads a class from after its bracket on. Returns it, and the pattern after it.
    fn read(mut rest: &[u8]) -> (Class, &[u8]) {
        let is_negative = rest.first() == Some(&b'^');
        rest = &rest[usize::from(is_negative)..];
        let mut class = Class::default();
        loop {
            match rest {
                [] => break,
                [b'\\', literal, after @ ..] => {
                    class.add(*literal);
                    rest = after;
                }
                [b']', after @ ..] => {
                    rest = after;
                    break;
                }
                [first, b'-', last, after @ ..] => {
                    (*first.min(last)..=*first.max(last)).for_each(|byte| class.add(byte));
                    rest = after;
                }
                [literal, after @ ..] => {
                    class.add(*literal);
                    rest = after;
                }
            }
        }
        if is_negative {
            class.0 = class.0.map(|bits| !bits);
        }
        (class, rest)
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn fits(pattern: &str, text: &[u8]) -> bool {
        Pattern::new(pattern.as_bytes()).fits(text, &mut 0)
    }

    #[test]
    fn patterns_fit_as_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab ab a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("h\\[a", "h[a", true),
            ("h\\*", "h*", true),
            ("h\\*", "hx", false),
            ("[\\]]", "]", true),
            ("[abc", "b", true),
            ("[", "", false),
            ("a\\", "a\\", true),
            ("tags:*:keys", "tags:users:keys", true),
            ("**x", "aax", true),
            ("a**", "a", true),
            ("*", "", true),
            ("[^", "x", true),
            ("[^]", "x", true),
            ("[a-]b", "_b", false),
            ("[a-", "-", true),
            ("*[^a-y]", "xyz", true),
            ("*?\\?", "ab?", true),
            ("*ab", "aab", true),
            ("*abc", "bc", false),
        ] {
            let is_fitting = fits(pattern, text.as_bytes());
            assert_eq!(is_fitting, expected, "{pattern} {text}");
        }
    }

    /// Neither stars nor classes multiply the work, and a text that is too short is no work.
    #[test]
    fn the_steps_are_bounded() {
        let steps_of = |pattern: &str, text_bytes: usize| {
            let mut steps = 0;
            Pattern::new(pattern.as_bytes()).fits(&vec![b'a'; text_bytes], &mut steps);
            steps
        };
        let class = format!("*[^{}]", "b".repeat(1_000));
        assert_eq!(
            steps_of(&(class.clone() + "\\"), 250),
            steps_of("*a\\", 250)
        );
        assert!(steps_of(&(class + "\\"), 250) < 4 * 250);
        assert_eq!(steps_of(&format!("*{}", "a".repeat(1_000)), 250), 1);
        for (stars, literals) in [(1, 125), (1, 249), (125, 1), (20, 10)] {
            let part = "*".to_string() + &"a".repeat(literals);
            let steps = steps_of(&(part.repeat(stars) + "b"), 250);
            assert!(
                (100..250 * 250 / 4 + 1_000).contains(&steps),
                "{stars}: {steps}"
            );
            assert!(
                steps_of(&part.repeat(stars), 10_000) < 10_000 * 255,
                "{stars}"
            );
        }
    }
}

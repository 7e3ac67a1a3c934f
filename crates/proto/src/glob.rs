//! Patterns as Redis matches keys against them: `*` stands for any bytes, `?` for one, `[abc]`,
//! `[^abc]` and `[a-z]` for one of a class, and a backslash takes the next byte as it is. A class
//! without an end takes the rest of the pattern.

/// Whether a pattern fits a text as a whole. It takes the product of both lengths at most.
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut taken) = (0, 0);
    // The last star: where the pattern goes on after it, and how much of the text it begins at.
    let mut star = None;
    loop {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, taken));
                continue;
            }
            None if taken == text.len() => return true,
            Some(_) if taken < text.len() => {
                if let Some(next) = after_one(pattern, at, text[taken]) {
                    (at, taken) = (next, taken + 1);
                    continue;
                }
            }
            _ => {}
        }
        // The star takes one byte more.
        match star {
            Some((next, from)) if from < text.len() => {
                (at, taken) = (next, from + 1);
                star = Some((next, from + 1));
            }
            _ => return false,
        }
    }
}

/// Where the pattern goes on if its next part, which stands for one byte, fits this one.
fn after_one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match pattern[at] {
        b'?' => Some(at + 1),
        b'[' => class(pattern, at + 1, byte),
        b'\\' if at + 1 < pattern.len() => (pattern[at + 1] == byte).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

/// Where the pattern goes on after a class, if the class has the byte.
fn class(pattern: &[u8], mut at: usize, byte: u8) -> Option<usize> {
    let is_negative = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negative);
    let mut has = false;
    loop {
        match pattern[at.min(pattern.len())..] {
            [] => break,
            [b'\\', literal, ..] => {
                has |= literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                has |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                has |= literal == byte;
                at += 1;
            }
        }
    }
    (has != is_negative).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::fits;

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
        ] {
            let is_fitting = fits(pattern.as_bytes(), text.as_bytes());
            assert_eq!(is_fitting, expected, "{pattern} {text}");
        }
    }

    /// Stars do not multiply the work.
    #[test]
    fn many_stars_end_soon() {
        let pattern = "*a".repeat(500) + "b";
        assert!(!fits(pattern.as_bytes(), &[b'a'; 250]));
        assert!(!fits(pattern.as_bytes(), &[b'a'; 10_000]));
    }
}

//! The sections in which a server shows its figures (RESP's `INFO`).

macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident $is_default:literal)*) => {
        /// A part of the answer to `INFO`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Section {
            $($(#[$doc])* $name,)*
        }

        impl Section {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Section] = &[$(Section::$name,)*];

            /// Its name in the answer.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Section::$name => stringify!($name),)*
                }
            }
        }

        impl Sections {
            /// Those that are shown without a name.
            pub const DEFAULT: Sections =
                Sections($(($is_default as u16) << Section::$name as u16)|*);
            /// Every one.
            pub const ALL: Sections = Sections($(1 << Section::$name as u16)|*);

            /// Adds what a word of the command names; a word that names nothing adds nothing.
            fn name(&mut self, word: &[u8]) {
                let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
                $(if is(stringify!($name).as_bytes()) {
                    self.0 |= 1 << Section::$name as u16;
                })*
                // In Redis, `ALL` leaves out what modules add. Here it is what the server adds.
                if is(b"DEFAULT") || is(b"ALL") {
                    self.0 |= Sections::DEFAULT.0;
                }
                if is(b"EVERYTHING") {
                    self.0 |= Sections::ALL.0;
                }
            }
        }
    };
}

/// A set of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections(u16);

sections! {
    /// The program and its process.
    Server true
    /// Connections.
    Clients true
    /// Memory.
    Memory true
    /// What is kept on disk: nothing.
    Persistence true
    /// Counters.
    Stats true
    /// Replicas: none.
    Replication true
    /// Processor time.
    CPU true
    /// Whether the server is one of a cluster: it is not.
    Cluster true
    /// Keys.
    Keyspace true
    /// The figures of memcached's `stats`.
    Glimmer false
}

impl Sections {
    /// The sections that the words after `INFO` name.
    pub fn of(words: &[&[u8]]) -> Sections {
        let mut sections = Sections(0);
        for word in words {
            sections.name(word);
        }
        match words {
            [] => Sections::DEFAULT,
            _ => sections,
        }
    }

    /// Whether a section is in the set.
    pub fn has(self, section: Section) -> bool {
        self.0 >> section as u16 & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_sections() {
        assert_eq!(Sections::of(&[]), Sections::DEFAULT);
        assert!(!Sections::DEFAULT.has(Section::Glimmer) && Sections::ALL.has(Section::Glimmer));
        assert_eq!(Sections::of(&[b"default"]), Sections::DEFAULT);
        assert_eq!(Sections::of(&[b"All"]), Sections::DEFAULT);
        assert_eq!(Sections::of(&[b"everything"]), Sections::ALL);
        let some = Sections::of(&[b"keyspace", b"Memory", b"nothing"]);
        let named = Section::ALL.iter().filter(|&&it| some.has(it));
        assert_eq!(named.count(), 2);
        assert!(some.has(Section::Memory) && some.has(Section::Keyspace));
        assert_eq!(Section::CPU.name(), "CPU");
    }
}

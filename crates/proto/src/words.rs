//! How a command without a key is answered.

use crate::control::{Answer, Control, Converse};

macro_rules! make_words {
    ($($(#[$doc:meta])* $name:ident($words:ty)),* $(,)?) => {
        /// How a command without a key is answered, in protocols that answer in words of their own;
        /// the text protocol has lines for its [`Admin`](crate::Admin) commands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Words {
            $($(#[$doc])* $name($words),)*
        }

        impl Words {
            /// See [`Converse::emit`].
            pub fn emit(&self, control: &Control<'_>, answer: Answer<'_>, out: &mut Vec<u8>) {
                match self {
                    $(Words::$name(words) => words.emit(control, answer, out),)*
                }
            }

            /// See [`Converse::emit_key`].
            pub fn emit_key(&self, key: &[u8], out: &mut Vec<u8>) {
                match self {
                    $(Words::$name(words) => words.emit_key(key, out),)*
                }
            }

            /// See [`Converse::emit_figures`].
            pub fn emit_figures(&self, lines: &[u8], more: bool, out: &mut Vec<u8>) {
                match self {
                    $(Words::$name(words) => words.emit_figures(lines, more, out),)*
                }
            }
        }
    };
}

dialects!(make_words);

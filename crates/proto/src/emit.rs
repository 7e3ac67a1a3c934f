//! Chooses the protocol that writes the outcome of a request.

use crate::outcome::{Emit, Found, ItemView, Outcome};
use crate::{Form, Request};

macro_rules! dispatch {
    (
        $(#[$borrowed_doc:meta])* $borrowed:ident($($borrowed_form:ident)::+);
        $($(#[$doc:meta])* $name:ident($form:ty)),* $(,)?
    ) => {
        impl Request<'_> {
            /// Appends the reply to this request in its protocol.
            #[inline(always)]
            pub fn emit<I: ItemView>(&self, outcome: Outcome<I>, out: &mut Vec<u8>) {
                match self.form {
                    $(Form::$name(form) => form.emit(self, outcome, out),)*
                    Form::$borrowed(form) => form.emit(self, outcome, out),
                }
            }

            /// See [`Emit::is_part`].
            #[inline(always)]
            pub fn is_part(&self) -> bool {
                match self.form {
                    $(Form::$name(form) => form.is_part(),)*
                    Form::$borrowed(form) => form.is_part(),
                }
            }

            /// See [`Emit::emit_read`].
            #[inline(always)]
            pub fn emit_read<I: ItemView>(&self, found: Found<I>, out: &mut Vec<u8>) -> bool {
                match self.form {
                    $(Form::$name(form) => form.emit_read(self, found, out),)*
                    Form::$borrowed(form) => form.emit_read(self, found, out),
                }
            }
        }
    };
}

forms!(dispatch);

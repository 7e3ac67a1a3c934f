//! Which protocol writes the outcome of a request.

use crate::outcome::{Emit, Found, ItemView, Outcome};
use crate::{Form, Request, text};

/// Chooses among the protocols. This is the only place that does so once a request has been parsed.
macro_rules! by_form {
    ($request:expr, $form:ident => $emit:expr) => {
        match $request.form {
            Form::Text { cas, last, quiet } => {
                let $form = text::Reply { cas, last, quiet };
                $emit
            }
            Form::Meta($form) => $emit,
            Form::Binary($form) => $emit,
            Form::Native($form) => $emit,
        }
    };
}

impl Request<'_> {
    /// Appends the reply to this request in the words of its protocol.
    #[inline(always)]
    pub fn emit<I: ItemView>(&self, outcome: Outcome<I>, out: &mut Vec<u8>) {
        by_form!(self, form => form.emit(self, outcome, out));
    }

    /// See [`Emit::emit_read`].
    #[inline(always)]
    pub fn emit_read<I: ItemView>(&self, found: Found<I>, out: &mut Vec<u8>) -> bool {
        by_form!(self, form => form.emit_read(self, found, out))
    }
}

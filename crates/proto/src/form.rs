//! How the answer to a request for a key is written.

macro_rules! make_form {
    (
        $(#[$borrowed_doc:meta])* $borrowed:ident($($borrowed_form:ident)::+);
        $($(#[$doc:meta])* $name:ident($form:ty)),* $(,)?
    ) => {
        /// How the answer to a request for a key is written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Form<'a> {
            $($(#[$doc])* $name($form),)*
            $(#[$borrowed_doc])* $borrowed($($borrowed_form)::+<'a>),
        }

        impl<'a> Form<'a> {
            /// The form without the bytes that it borrows, and those bytes.
            #[inline]
            pub fn detach(self) -> (Form<'static>, &'a [u8]) {
                match self {
                    $(Form::$name(form) => (Form::$name(form), &[]),)*
                    Form::$borrowed(form) => {
                        let (form, bytes) = form.detach();
                        (Form::$borrowed(form), bytes)
                    }
                }
            }

            /// The form, with bytes in place of those that [`detach`](Form::detach) left out.
            #[inline]
            pub fn attach<'b>(self, bytes: &'b [u8]) -> Form<'b> where 'a: 'b {
                match self {
                    $(Form::$name(form) => Form::$name(form),)*
                    Form::$borrowed(form) => Form::$borrowed(form.attach(bytes)),
                }
            }
        }
    };
}

forms!(make_form);

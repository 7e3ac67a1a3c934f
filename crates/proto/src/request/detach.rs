//! A request without the bytes that it borrows, for when it crosses over to another worker.

use super::{Verb, Write};

impl<'a> Verb<'a> {
    /// The verb without the value that it carries, and the value.
    #[inline]
    pub fn detach(self) -> (Verb<'static>, &'a [u8]) {
        let verb = match self {
            Verb::Store {
                mode,
                flags,
                exptime,
                value,
            } => {
                let verb = Verb::Store {
                    mode,
                    flags,
                    exptime,
                    value: &[],
                };
                return (verb, value);
            }
            Verb::Meta { command, value } => {
                return (
                    Verb::Meta {
                        command,
                        value: &[],
                    },
                    value,
                );
            }
            Verb::Write(write) => {
                let verb = Verb::Write(Write {
                    bytes: &[],
                    ..write
                });
                return (verb, write.bytes);
            }
            Verb::Append { value } => return (Verb::Append { value: &[] }, value),
            Verb::Overlay { from, value } => return (Verb::Overlay { from, value: &[] }, value),
            Verb::AddDecimal { number } => return (Verb::AddDecimal { number: &[] }, number),
            Verb::DeleteEqual { value } => return (Verb::DeleteEqual { value: &[] }, value),
            Verb::DeleteUnchanged {
                cas,
                expiry_ms,
                value,
            } => {
                let verb = Verb::DeleteUnchanged {
                    cas,
                    expiry_ms,
                    value: &[],
                };
                return (verb, value);
            }
            Verb::ExpireEqual { value, ms, renewal } => {
                let verb = Verb::ExpireEqual {
                    value: &[],
                    ms,
                    renewal,
                };
                return (verb, value);
            }
            Verb::Expire { lifetime, when } => Verb::Expire { lifetime, when },
            Verb::GetAndExpire { lifetime } => Verb::GetAndExpire { lifetime },
            Verb::Take => Verb::Take,
            Verb::Add { delta, rule } => Verb::Add { delta, rule },
            Verb::Get => Verb::Get,
            Verb::Look => Verb::Look,
            Verb::GetAndTouch { exptime } => Verb::GetAndTouch { exptime },
            Verb::Delete => Verb::Delete,
            Verb::DeleteIf { cas } => Verb::DeleteIf { cas },
            Verb::Increment { delta } => Verb::Increment { delta },
            Verb::Decrement { delta } => Verb::Decrement { delta },
            Verb::Count {
                down,
                delta,
                cas,
                create,
            } => Verb::Count {
                down,
                delta,
                cas,
                create,
            },
            Verb::Touch { exptime } => Verb::Touch { exptime },
            Verb::Refused { reason } => Verb::Refused { reason },
        };
        (verb, &[])
    }

    /// The verb, with a value in place of the one that [`detach`](Verb::detach) left out.
    #[inline]
    pub fn attach<'b>(self, bytes: &'b [u8]) -> Verb<'b>
    where
        'a: 'b,
    {
        let mut verb: Verb<'b> = self;
        if let Verb::Store { value, .. }
        | Verb::Write(Write { bytes: value, .. })
        | Verb::Append { value }
        | Verb::Overlay { value, .. }
        | Verb::AddDecimal { number: value }
        | Verb::DeleteEqual { value }
        | Verb::DeleteUnchanged { value, .. }
        | Verb::ExpireEqual { value, .. }
        | Verb::Meta { value, .. } = &mut verb
        {
            *value = bytes;
        }
        verb
    }
}

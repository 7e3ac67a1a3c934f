//! Which administrative commands clients may use.

use glimmer_proto::AdminCommand;

/// A set of administrative commands: those that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits(u32);

const _: () = assert!(AdminCommand::ALL.len() < u32::BITS as usize);

impl Permits {
    /// Every command but those that a server has to be started for, as is the default.
    pub const DEFAULT: Permits = Permits(u32::MAX)
        .without(AdminCommand::Debugtime)
        .without(AdminCommand::Shutdown);

    /// These and another command.
    pub const fn with(self, command: AdminCommand) -> Permits {
        Permits(self.0 | 1 << command as u32)
    }

    /// These without a command.
    pub const fn without(self, command: AdminCommand) -> Permits {
        Permits(self.0 & !(1 << command as u32))
    }

    /// Whether clients may use a command.
    pub const fn has(self, command: AdminCommand) -> bool {
        self.0 & 1 << command as u32 != 0
    }
}

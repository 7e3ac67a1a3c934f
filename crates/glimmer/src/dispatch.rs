//! `glimmer dispatch`: shows how a running server dispatches requests, or changes it.

use anyhow::bail;
use clap::Args;
use glimmer_server::AccessMode;

use crate::running::RunningServer;

/// Show how a running server dispatches requests, or change that
///
/// With a policy, an access mode or both, the command ends when every worker of the server goes by
/// them. No request is lost, repeated or executed out of order meanwhile, and no item is lost. It
/// then shows the plan, as `stats dispatch` does.
/// The settings of --dispatch-percentile and the like stay those that the server was started with.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    glimmer dispatch\n  \
    glimmer dispatch size-aware\n  \
    glimmer dispatch size-aware:4096 --server cache.example:11211\n  \
    glimmer dispatch --access crew\n  \
    glimmer dispatch --server cache.example --tls --auth-user ann --password-file pw")]
pub struct Arguments {
    /// The policy, as for --dispatch of serve [default: the one in force stays]
    policy: Option<String>,

    /// Who may touch a partition, as for --access of serve [default: it stays]
    #[arg(long, value_name = "MODE")]
    access: Option<AccessMode>,

    #[command(flatten)]
    server: RunningServer,
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(policy) = &self.policy
            && (policy.is_empty() || policy.contains(|c: char| c.is_whitespace() || c.is_control()))
        {
            bail!("{policy:?} is not a policy: give one word, such as size-aware:65536");
        }
        let access = self.access.map(AccessMode::name);
        let mut link = self.server.connect()?;
        let wanted: Vec<&str> = self.policy.as_deref().into_iter().chain(access).collect();
        if !wanted.is_empty() {
            let command = format!("dispatch {}", wanted.join(" "));
            if let Err(reason) = self.server.tell(&mut link, &command)? {
                bail!("{}", self.in_words_of_flags(&reason));
            }
        }
        for (name, value) in self.server.stats(&mut link, "dispatch")? {
            println!("{name} {value}");
        }
        Ok(())
    }
}

/// What the server says between the reason of a refusal and the protocol's commands that it would
/// take.
const COMMANDS_FOLLOW: &str = ": change the access mode too";

impl Arguments {
    /// A refusal with the flags that would be taken in place of the protocol's commands.
    fn in_words_of_flags(&self, refusal: &str) -> String {
        let Some((reason, _)) = refusal.split_once(COMMANDS_FOLLOW) else {
            return refusal.to_owned();
        };
        let policy = self.policy.as_deref();
        match (policy, self.access) {
            (None, Some(access)) => format!(
                "{reason}: change the policy too, with glimmer dispatch keyhash --access {access}"
            ),
            _ => format!(
                "{reason}: change the access mode too, with glimmer dispatch {} --access crcw",
                policy.unwrap_or_default()
            ),
        }
    }
}

//! Floor 7: manual pages and completions, written from the programs' own command lines. So they
//! cannot lack a flag.

use anyhow::Context;
use clap::Command;
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// The shells, with the folder of each where distributions have completions.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash"),
    (Shell::Zsh, "zsh"),
    (Shell::Fish, "fish"),
];

/// Writes `man1/*.1` and the completions of each shell into a folder.
///
/// # Errors
///
/// The file that cannot be written.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    let server = with_neighbours(glimmer::command());
    let pages = folder.join("man1");
    fs::create_dir_all(&pages).with_context(|| format!("cannot make {}", pages.display()))?;
    write_pages(&server, "", &pages)?;
    for (shell, name) in SHELLS {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        generate_to(shell, &mut server.clone(), "glimmer", &folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
    }
    Ok(())
}

/// The server's command line knows the commands of other programs by name alone. That of
/// `glimmer top` is put in whole.
fn with_neighbours(server: Command) -> Command {
    server.mut_subcommand("top", |_| glimmer_top::command().name("top"))
}

/// Writes the page of a command and those of its subcommands: `glimmer-config-check.1`.
fn write_pages(command: &Command, before: &str, folder: &Path) -> anyhow::Result<()> {
    let name = match before {
        "" => command.get_name().to_owned(),
        before => format!("{before}-{}", command.get_name()),
    };
    let called = name.replace('-', " ");
    let page = command.clone().disable_help_subcommand(true);
    let page = page.display_name(name.clone()).bin_name(called);
    let mut text = Vec::new();
    Man::new(page)
        .title(name.to_uppercase())
        .render(&mut text)?;
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let commands = command.get_subcommands();
    commands
        .filter(|it| !it.is_hide_set() && it.get_name() != "help")
        .try_for_each(|it| write_pages(it, &name, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command has a page, and each page has every flag of its command.
    #[test]
    fn every_flag_has_its_place_in_the_manual() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let page = |name: &str| {
            let path = folder.path().join(format!("man1/{name}.1"));
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let server = glimmer::command();
        for command in server.get_subcommands() {
            page(&format!("glimmer-{}", command.get_name()));
        }
        let serve = server.find_subcommand("serve").expect("it serves");
        let text = page("glimmer-serve");
        for flag in serve.get_arguments().filter(|it| !it.is_hide_set()) {
            let name = flag.get_long().expect("each flag has a long name");
            let written = format!("\\-\\-{}", name.replace('-', "\\-"));
            assert!(text.contains(&written), "{name}");
        }
        assert!(page("glimmer-config-from-memcached").contains("memcached"));
        assert!(page("glimmer-top").contains("\\-\\-"), "it has flags");
        let complete = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
        for path in ["bash/glimmer.bash", "zsh/_glimmer", "fish/glimmer.fish"] {
            assert!(complete(path).contains("memory-limit"), "{path}");
        }
    }
}

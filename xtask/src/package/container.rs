//! The file system of the container, as `contrib/container/Containerfile` describes it. What builds
//! images needs a registry and rights that tests have not, so the last stage is carried out here.

use super::roots;
use crate::process::{self, program, run};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const CONTAINERFILE: &str = "contrib/container/Containerfile";
/// What the container is put through.
const TRIAL: &str = include_str!("container_trial.sh");
/// What its image is put through, where there is podman.
const IMAGE_TRIAL: &str = include_str!("image_trial.sh");

const COMPILERS: &[Tool] = &[Tool {
    probe: &["musl-gcc"],
    packages: &["musl-tools"],
    without: "the static build of the server",
}];

/// Builds the static server and the file system, and tries it if that is asked for.
pub fn build(folder: &Path, is_tried: bool) -> anyhow::Result<Vec<PathBuf>> {
    let image = Image::read(&fs::read_to_string(CONTAINERFILE)?)?;
    let server = static_server()?;
    let root = roots::empty(folder, "container")?;
    for (from, to) in &image.copies {
        let is_server = from.ends_with("/release/glimmer");
        let from = if is_server { &server } else { Path::new(from) };
        let to = root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    let archive = folder.join("glimmer-container.tar");
    let owner = ["--owner=0", "--group=0", "--sort=name", "-C"];
    run(program("tar", &owner).args([&root, Path::new("-cf"), &archive, Path::new(".")]))?;
    if is_tried {
        try_out(&image, &root, folder)?;
        try_image(&server, folder)?;
    }
    Ok(vec![archive])
}

/// Builds the server without anything that it needs from a system but the kernel.
fn static_server() -> anyhow::Result<PathBuf> {
    let machine = process::host()?;
    let machine = machine.split('-').next().unwrap_or_default();
    let target = format!("{machine}-unknown-linux-musl");
    if !tools::install(COMPILERS) {
        bail!("there is no C compiler for musl");
    }
    if process::exists("rustup") {
        run(program("rustup", &["target", "add"]).arg(&target))?;
    }
    let arguments = ["build", "--release", "-p", "glimmer", "--target"];
    run(process::cargo(&arguments).arg(&target))?;
    Ok(process::target_dir().join(target).join("release/glimmer"))
}

/// Runs the server as a container does: as the user, with the variables and the command line of the
/// image, in a root that cannot be written to.
fn try_out(image: &Image, root: &Path, folder: &Path) -> anyhow::Result<()> {
    let trial = folder.join("container-trial.sh");
    let quoted = |words: &[String]| {
        words
            .iter()
            .map(|it| format!("'{it}' "))
            .collect::<String>()
    };
    let command = [&*image.entrypoint, &*image.command].concat();
    let settings = [
        ("root", root.display().to_string()),
        ("user", image.user.clone()),
        ("variables", quoted(&image.variables)),
        ("command", quoted(&command)),
        ("health", quoted(&image.health)),
    ];
    let settings = settings.map(|(name, value)| format!("{name}=\"{value}\"\n"));
    fs::write(&trial, settings.concat() + TRIAL)?;
    roots::run_apart(&format!("exec sh {}", trial.display()))
}

/// Has podman build the image, and run it. The first stage needs a registry, so what it builds is
/// built here.
fn try_image(server: &Path, folder: &Path) -> anyhow::Result<()> {
    if !process::exists("podman") {
        println!("package: the image is not built, as podman is missing");
        return Ok(());
    }
    let context = roots::empty(folder, "image")?;
    fs::create_dir_all(&context)?;
    fs::copy(server, context.join("glimmer"))?;
    let text = last_stage(&fs::read_to_string(CONTAINERFILE)?)?;
    fs::write(context.join("Containerfile"), text)?;
    let trial = folder.join("image-trial.sh");
    let setting = format!("context='{}'\n", context.display());
    fs::write(&trial, setting + IMAGE_TRIAL)?;
    run(program("sh", &[]).arg(&trial))
}

/// The last stage of a Containerfile, which takes its one file from its own folder.
fn last_stage(text: &str) -> anyhow::Result<String> {
    let start = text.rfind("\nFROM ").context("there are two stages")? + 1;
    let lines = text[start..].lines().map(|line| match line {
        copy if copy.starts_with("COPY ") => {
            let to = copy.split(' ').next_back().unwrap_or_default();
            format!("COPY glimmer {to}\n")
        }
        other => format!("{other}\n"),
    });
    Ok(lines.collect())
}

/// What the last stage of a Containerfile says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Image {
    /// From where to where.
    copies: Vec<(String, String)>,
    /// `NAME=VALUE`.
    variables: Vec<String>,
    /// `USER:GROUP`.
    user: String,
    entrypoint: Vec<String>,
    command: Vec<String>,
    health: Vec<String>,
}

impl Image {
    /// Reads as much as our file has of the language.
    fn read(text: &str) -> anyhow::Result<Image> {
        let mut image = Image::default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let (word, rest) = line
                .split_once(' ')
                .context("an instruction has arguments")?;
            let list = || {
                let start = rest.find('[').context("a list of words in brackets")?;
                Ok::<Vec<String>, anyhow::Error>(serde_json::from_str(&rest[start..])?)
            };
            match word {
                // What follows is another stage.
                "FROM" => image = Image::default(),
                "COPY" => {
                    let files = rest.split(' ').filter(|it| !it.starts_with("--"));
                    let files: Vec<&str> = files.collect();
                    let [from, to] = files[..] else {
                        bail!("{line}: one file and its place");
                    };
                    image.copies.push((from.to_owned(), to.to_owned()));
                }
                "ENV" => image.variables.push(rest.to_owned()),
                "USER" => image.user = rest.to_owned(),
                "ENTRYPOINT" => image.entrypoint = list()?,
                "CMD" => image.command = list()?,
                "HEALTHCHECK" => image.health = list()?,
                "RUN" | "WORKDIR" | "EXPOSE" | "STOPSIGNAL" => {}
                other => bail!("{CONTAINERFILE}: {other} is not known here"),
            }
        }
        if !text.contains("\nFROM scratch\n") || image.user.is_empty() {
            bail!("{CONTAINERFILE}: the last stage begins from scratch, and has a user");
        }
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stage_is_what_runs() {
        let text = fs::read_to_string(process::repository().join(CONTAINERFILE)).unwrap();
        let image = Image::read(&text).unwrap();
        assert_eq!(image.copies.len(), 1);
        assert_eq!(image.copies[0].1, image.entrypoint[0]);
        assert_eq!(image.health, ["/glimmer", "health"]);
        let last = last_stage(&text).unwrap();
        assert!(
            last.starts_with("FROM scratch\nCOPY glimmer /glimmer\n"),
            "{last}"
        );
        assert!(!image.user.starts_with("0:") && !image.user.starts_with("root"));
        assert!(
            image
                .variables
                .iter()
                .any(|it| it == "GLIMMER_MEMORY_LIMIT=75%")
        );
    }
}

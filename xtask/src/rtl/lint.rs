//! Verilator's warnings, all of them, for each module by itself and at both widths; and Yosys as a
//! second reader of every file.

use super::sources;
use crate::lanes;
use crate::process::program;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};

/// Warnings that are waived, each with a reason in a comment above it.
const WAIVERS: &str = "accel/waivers.vlt";
const WAIVERS_MAX: usize = 5;
/// Bytes of the datapath.
const WIDTHS: [u32; 2] = [1, 8];

/// Fails at the first warning.
pub fn check() -> anyhow::Result<()> {
    let files = sources::files()?;
    waivers(&files)?;
    let mut commands = Vec::new();
    for (file, module) in sources::modules(&files) {
        let has_width = sources::has_width(file)?;
        for width in WIDTHS {
            if has_width || width == WIDTHS[0] {
                let width = has_width.then_some(width);
                commands.push(verilator(&files[0], file, module, width));
                commands.push(yosys(&files, module, width));
            }
        }
    }
    let runs = commands.len();
    let faults: Vec<String> = lanes::one_per_core(&commands, |(what, arguments)| {
        let output = program(what, &[]).args(arguments).output();
        let output = output.with_context(|| format!("cannot start {what}"))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let is_clean = output.status.success() && !said.contains("Warning");
        Ok((!is_clean).then(|| format!("{what} {}\n{said}", arguments.join(" "))))
    })?
    .into_iter()
    .flatten()
    .collect();
    println!("lint: {} of {runs} runs are clean", runs - faults.len());
    if let Some(first) = faults.first() {
        bail!("{} faults, the first one:\n{first}", faults.len());
    }
    Ok(())
}

type Arguments = (&'static str, Vec<String>);

fn verilator(package: &Path, file: &Path, module: &str, width: Option<u32>) -> Arguments {
    let mut arguments: Vec<String> = ["--lint-only", "-Wall", "-y", sources::RTL, WAIVERS]
        .map(str::to_owned)
        .into();
    arguments.extend(width.map(|width| format!("-GW={width}")));
    arguments.extend(["--top-module", module].map(str::to_owned));
    arguments.extend([package, file].map(|file| file.display().to_string()));
    ("verilator", arguments)
}

fn yosys(files: &[PathBuf], module: &str, width: Option<u32>) -> Arguments {
    let width = width.map_or_else(String::new, |width| {
        format!("chparam -set W {width} {module};")
    });
    let script = format!(
        "read_verilog -sv {}; {width} hierarchy -check -top {module}; proc; check -assert",
        sources::words(files)
    );
    ("yosys", ["-q", "-p", &script].map(str::to_owned).into())
}

/// Waivers are few, have reasons, and are in their file.
fn waivers(files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files {
        let text = std::fs::read_to_string(file)?;
        ensure!(
            !text.contains("lint_off"),
            "{}: waivers belong in {WAIVERS}",
            file.display()
        );
    }
    let text = std::fs::read_to_string(WAIVERS).context(WAIVERS)?;
    let count = reasoned(&text)?;
    ensure!(
        count <= WAIVERS_MAX,
        "{WAIVERS}: {count} waivers, and {WAIVERS_MAX} are allowed"
    );
    println!("lint: {count} waivers");
    Ok(())
}

/// The number of waivers, each of which has a comment on the line above it.
fn reasoned(text: &str) -> anyhow::Result<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut count = 0;
    for (place, line) in lines.iter().enumerate() {
        if line.starts_with("lint_off") {
            let above = place.checked_sub(1).map_or("", |above| lines[above]);
            ensure!(
                above.starts_with("//"),
                "{WAIVERS}: {line:?} has no reason above it"
            );
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiver_needs_a_reason() {
        let good = "`verilator_config\n// Why.\nlint_off -rule A\n// Why.\nlint_off -rule B\n";
        assert_eq!(reasoned(good).unwrap(), 2);
        assert!(reasoned("`verilator_config\nlint_off -rule A\n").is_err());
    }
}

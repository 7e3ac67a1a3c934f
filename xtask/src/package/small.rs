//! The trial of packages in small, for continuous integration: with the programs of the tests, and
//! without a package and a root of Debian, each of which would take minutes to build. So pages and
//! completions are not tried here.

use super::{folder, roots};
use crate::process;
use std::fs;

/// What is done with what a package has.
const TRIAL: &str = include_str!("small_trial.sh");

/// MiB of items that have to survive.
const FILL_MIB: u32 = 16;

/// Lays tmpfs over what the trial writes to, and runs it.
const APART: &str = r#"mount -t tmpfs tmpfs "$over" && cp "$trial" "$over/trial.sh" &&
for place in usr etc; do
    mkdir -p "$over/$place/upper" "$over/$place/work" &&
    mount -t overlay overlay "/$place" \
        -o "lowerdir=/$place,upperdir=$over/$place/upper,workdir=$over/$place/work" || exit 1
done
mount -t tmpfs -o mode=1777 shm /dev/shm && exec sh "$over/trial.sh""#;

/// Installs, uses, upgrades, kills and restarts the server that was built for the tests.
pub fn check() -> anyhow::Result<()> {
    if !process::is_root()? {
        println!("package: SKIPPED, as the trial needs root");
        return Ok(());
    }
    let folder = std::path::absolute(folder())?;
    let over = roots::empty(&folder, "over")?;
    fs::create_dir_all(&over)?;
    let programs = std::path::absolute(process::target_dir().join("debug"))?;
    let trial = folder.join("small-trial.sh");
    let settings = [
        ("programs", programs),
        ("repository", process::repository()),
    ];
    let settings = settings.map(|(name, value)| format!("{name}='{}'\n", value.display()));
    fs::write(&trial, settings.concat() + &roots::trial(TRIAL, FILL_MIB))?;
    let (over, trial) = (over.display(), trial.display());
    roots::run_apart(&format!("over='{over}'; trial='{trial}'; {APART}"))
}

//! Makes a library of a top. It is kept under `target/rtl` by a hash of everything that it was made
//! from, and made once, however many tests ask for it at a time.

use crate::tools::Tools;
use crate::tops::Top;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A top as it is to be built.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The module.
    pub top: Top,
    /// Values of its parameters.
    pub parameters: Vec<(&'static str, u64)>,
    /// A planted bug: a macro that the sources ask for.
    pub bug: Option<&'static str>,
    /// Whether it can write all of its signals to a file. That makes it slower.
    pub is_traced: bool,
}

impl Variant {
    /// A top with its own parameters and no bug.
    pub fn new(top: Top) -> Variant {
        Variant {
            top,
            parameters: Vec::new(),
            bug: None,
            is_traced: false,
        }
    }

    /// With this value of a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: u64) -> Variant {
        self.parameters.push((name, value));
        self
    }

    /// With a planted bug.
    #[must_use]
    pub fn with_bug(mut self, bug: &'static str) -> Variant {
        self.bug = Some(bug);
        self
    }

    /// The library, made if it is not there yet.
    ///
    /// # Panics
    ///
    /// If Verilator or the compiler refuses the sources.
    pub fn build(&self, tools: &Tools) -> PathBuf {
        let kept = kept();
        let runtime = runtime(tools, &kept, self.kind());
        let folder = kept.join(format!(
            "{}-{:016x}",
            self.top.name,
            self.fingerprint(tools)
        ));
        once(&folder, |folder| self.make(tools, &runtime, folder));
        folder.join("library.so")
    }

    /// The cover points come after the circuit's own files.
    fn sources(&self) -> Vec<PathBuf> {
        let accel = root().join("accel");
        let rtl = accel.join("rtl");
        let mut files: Vec<_> = self.top.sources.iter().map(|file| rtl.join(file)).collect();
        let points = accel.join("cover").join(self.top.name);
        files.extend(
            Some(points.with_extension("sv")).filter(|file| self.is_covered() && file.exists()),
        );
        files
    }

    /// Whether the circuit notes what it has reached. One with a planted bug does not.
    fn is_covered(&self) -> bool {
        self.bug.is_none() && std::env::var_os("GLIMMER_RTL_COVERAGE").is_some()
    }

    fn kind(&self) -> Kind {
        Kind {
            is_covered: self.is_covered(),
            is_traced: self.is_traced,
        }
    }

    fn shim(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("shims")
            .join(self.top.shim)
    }

    fn fingerprint(&self, tools: &Tools) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            tools,
            &self.parameters,
            self.bug,
            FLAGS,
            RUNTIME,
            self.kind(),
        )
            .hash(&mut hasher);
        let ports = self.shim().with_file_name("shim.h");
        for file in self.sources().into_iter().chain([self.shim(), ports]) {
            let text =
                fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            text.hash(&mut hasher);
        }
        hasher.finish()
    }

    fn make(&self, tools: &Tools, runtime: &Path, folder: &Path) {
        let mut verilator = Command::new(&tools.verilator);
        verilator
            .args([
                "--cc",
                "--no-timing",
                "-O3",
                "--x-assign",
                "unique",
                "--x-initial",
                "unique",
            ])
            .args(["--prefix", "Vtop", "--top-module", self.top.name, "--Mdir"])
            .arg(folder)
            .args(
                self.parameters
                    .iter()
                    .map(|(name, value)| format!("-G{name}={value}")),
            )
            .args(self.bug.map(|bug| format!("+define+{bug}")))
            .args(COVERAGE.iter().filter(|_| self.is_covered()))
            .args(self.is_traced.then_some("--trace"))
            .args(self.sources());
        run(&mut verilator);
        // One translation unit: it compiles in a third of the time of all the files one by one.
        let mut whole = String::new();
        for file in fs::read_dir(folder).expect("made").flatten() {
            let name = file.file_name().into_string().expect("Verilator's names");
            if name.ends_with(".cpp") {
                whole += &format!("#include \"{name}\"\n");
            }
        }
        whole += &format!("#include \"{}\"\n", self.shim().display());
        let all = folder.join("all.cpp");
        fs::write(&all, whole).expect("written");
        let mut compiler = compiler(tools, self.kind());
        if self.bug.is_some() {
            // It runs for a moment only.
            compiler.arg("-O0");
        }
        compiler.arg("-I").arg(folder).arg("-shared").arg("-o");
        compiler
            .arg(folder.join("library.so"))
            .arg(&all)
            .arg(runtime);
        run(&mut compiler);
    }
}

const COVERAGE: [&str; 2] = ["--coverage-line", "--coverage-user"];

const FLAGS: &[&str] = &[
    "-std=c++17",
    "-O2",
    "-fPIC",
    // Else nothing could be inlined that the library exports.
    "-fno-semantic-interposition",
    // Libraries of several variants in one process share nothing.
    "-fno-gnu-unique",
    "-Wl,-Bsymbolic",
    "-DVM_SC=0",
    "-DVL_TIME_CONTEXT",
];

/// The files of Verilator's runtime, and the one that traced circuits have besides.
const RUNTIME: [&str; 3] = [
    "verilated.cpp",
    "verilated_threads.cpp",
    "verilated_cov.cpp",
];
const RUNTIME_OF_TRACES: &str = "verilated_vcd_c.cpp";

/// What a circuit does besides.
#[derive(Clone, Copy, Hash)]
struct Kind {
    is_covered: bool,
    is_traced: bool,
}

fn compiler(tools: &Tools, kind: Kind) -> Command {
    let mut command = Command::new(&tools.compiler);
    command.args(FLAGS);
    command.arg(format!("-DVM_COVERAGE={}", u8::from(kind.is_covered)));
    command.arg(format!("-DVM_TRACE={}", u8::from(kind.is_traced)));
    command.arg(format!("-DVM_TRACE_VCD={}", u8::from(kind.is_traced)));
    for folder in [tools.include.clone(), tools.include.join("vltstd")] {
        command.arg("-I").arg(folder);
    }
    command
}

/// Verilator's runtime as an object file, which all libraries contain.
fn runtime(tools: &Tools, kept: &Path, kind: Kind) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (tools, FLAGS, RUNTIME, kind).hash(&mut hasher);
    let folder = kept.join(format!("runtime-{:016x}", hasher.finish()));
    once(&folder, |folder| {
        let of_traces = Some(RUNTIME_OF_TRACES).filter(|_| kind.is_traced);
        let whole: String = (RUNTIME.into_iter().chain(of_traces))
            .map(|file| format!("#include \"{}\"\n", tools.include.join(file).display()))
            .collect();
        let all = folder.join("all.cpp");
        fs::write(&all, whole).expect("written");
        let mut compiler = compiler(tools, kind);
        compiler.arg("-c").arg("-o").arg(folder.join("verilated.o"));
        run(compiler.arg(all));
    });
    folder.join("verilated.o")
}

/// Makes a folder unless it is there. Others, in this process or another one, wait for it.
fn once(folder: &Path, make: impl FnOnce(&Path)) {
    let parent = folder.parent().expect("within target");
    fs::create_dir_all(parent).expect("created");
    let lock = File::create(folder.with_extension("lock")).expect("created");
    lock.lock().expect("locked");
    if folder.exists() {
        return;
    }
    let making = folder.with_extension("making");
    match fs::remove_dir_all(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
    fs::create_dir(&making).expect("created");
    make(&making);
    fs::rename(&making, folder).expect("renamed");
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{out}{error}");
}

/// The repository's root.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("this repository")
}

fn kept() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target
        .map_or_else(|| root().join("target"), PathBuf::from)
        .join("rtl")
}

//! The program in the kernel.

use crate::error::Error;
use crate::link;
use crate::maps::{self, Entries};
use crate::settings::{Growth, Limits, Mode, Raw, Settings};
use aya::maps::{Map, MapError};
use aya::programs::{ProgramError, SchedClassifier, TestRun as _, TestRunOptions, Xdp};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfError, EbpfLoader};
use glimmer_hotset::Memory;
use glimmer_transport::xdp::{Link, LinkPoint, Program as Redirection};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// The compiled program, aligned as the structures of an ELF file are. `cargo xtask packet-program`
/// makes it from the sources beside it.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../program.o");

const XDP: &str = "glimmer_xdp";
const TCX: &str = "glimmer_tcx";
const HANDED: &str = "glimmer_handed";

/// The first kernel with `bpf_xdp_load_bytes`.
const XDP_SINCE: KernelVersion = KernelVersion::new(5, 18, 0);
/// The first kernel with tcx.
const TCX_SINCE: KernelVersion = KernelVersion::new(6, 6, 0);

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has become the reply.
    Reply,
    /// It goes up to the server.
    Pass,
}

/// What the program did with a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// What becomes of the frame.
    pub verdict: Verdict,
    /// The frame afterwards.
    pub frame: Vec<u8>,
    /// Nanoseconds of one run, as the mean of all of them.
    pub ns: u32,
}

/// A program that is loaded, and not attached yet.
#[derive(Debug)]
pub struct Program {
    ebpf: Ebpf,
    memory: Arc<Memory>,
    mode: Mode,
    hands_over: bool,
}

impl Program {
    /// Loads the program. All slots are empty.
    ///
    /// # Errors
    ///
    /// Why that is not possible.
    pub fn load(settings: &Settings, limits: &Limits) -> Result<Program, Error> {
        let mut limits = *limits;
        check_machine(settings.mode, &mut limits.growth)?;
        let hands_over = limits.growth.hand_over;
        let raw = Raw::of(settings, &limits)?;
        let entries = Entries::of(settings.slots);
        let slots = u32::try_from(entries.slots).expect("the settings have been checked");
        let cpus = u32::try_from(entries.cpus).expect("a machine has fewer cores");
        let mut loader = EbpfLoader::new();
        loader
            .override_global("settings", &raw, true)
            .map_max_entries("slots", slots)
            .map_max_entries("counts", slots * cpus)
            .map_max_entries("tallies", cpus);
        if let Some(redirection) = &settings.redirection {
            glimmer_transport::xdp::prepare(&mut loader, redirection);
        }
        let mut ebpf = loader.load(OBJECT).map_err(from_object)?;
        if settings.mode == Mode::Tcx {
            classifier(&mut ebpf, TCX)?.load().map_err(from_program)?;
        } else {
            xdp(&mut ebpf)?.load().map_err(from_program)?;
        }
        if hands_over {
            classifier(&mut ebpf, HANDED)?
                .load()
                .map_err(from_program)?;
        }
        let fds = [
            map(&ebpf, "slots")?,
            map(&ebpf, "control")?,
            map(&ebpf, "counts")?,
            map(&ebpf, "tallies")?,
        ];
        let memory = Arc::new(maps::memory(entries, settings.seed, fds)?);
        Ok(Program {
            ebpf,
            memory,
            mode: settings.mode,
            hands_over,
        })
    }

    /// The memory that the program answers from.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The maps of the redirection, which are there once.
    ///
    /// # Errors
    ///
    /// If they are not of the kinds that they should be.
    pub(crate) fn take_redirection(&mut self) -> Result<Redirection, Error> {
        let taken = Redirection::of(&mut self.ebpf);
        taken.map_err(|error| Error::Object(format!("{error:?}")))
    }

    /// How the program is to be attached.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Runs the program on a frame that comes from nowhere, this many times one after the other on
    /// what the last run has left of it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the kernel does not run it, as with a frame shorter than Ethernet's header.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestRun, Error> {
        const FRAME_BYTES_MAX: usize = 4096;
        let mut out = vec![0; FRAME_BYTES_MAX];
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            repeat,
            ..TestRunOptions::default()
        };
        let name = if self.mode == Mode::Tcx { TCX } else { XDP };
        let program = self.ebpf.program(name).ok_or_else(|| missing(name))?;
        let (replied, result) = if self.mode == Mode::Tcx {
            const TCX_REDIRECT: u32 = 7;
            let program: &SchedClassifier = program.try_into().map_err(from_program)?;
            (TCX_REDIRECT, program.test_run(options))
        } else {
            const XDP_TX: u32 = 3;
            let program: &Xdp = program.try_into().map_err(from_program)?;
            (XDP_TX, program.test_run(options))
        };
        let result = result.map_err(from_program)?;
        out.truncate(result.data_size_out as usize);
        Ok(TestRun {
            verdict: if result.return_value == replied {
                Verdict::Reply
            } else {
                Verdict::Pass
            },
            frame: out,
            ns: u32::try_from(result.duration.as_nanos()).unwrap_or(u32::MAX),
        })
    }

    /// Attaches the program to an interface.
    ///
    /// # Errors
    ///
    /// Why that is not possible.
    pub(crate) fn attach(&self, ifindex: u32) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        // What takes packets over comes before what hands them over.
        if self.hands_over {
            links.push(link::tie(self.fd(HANDED)?, ifindex, LinkPoint::TcxIngress)?);
        }
        let (name, at) = match self.mode {
            Mode::Driver => (XDP, LinkPoint::XdpDriver),
            Mode::Generic => (XDP, LinkPoint::XdpGeneric),
            Mode::Tcx => (TCX, LinkPoint::TcxIngress),
        };
        links.push(link::tie(self.fd(name)?, ifindex, at)?);
        Ok(links)
    }

    fn fd(&self, name: &'static str) -> Result<BorrowedFd<'_>, Error> {
        let program = self.ebpf.program(name).ok_or_else(|| missing(name))?;
        Ok(program.fd().map_err(from_program)?.as_fd())
    }
}

/// Loads the program with these settings, and runs it once on a frame.
///
/// # Errors
///
/// Why that is not possible.
pub fn test_run(settings: &Settings, limits: &Limits, frame: &[u8]) -> Result<TestRun, Error> {
    Program::load(settings, limits)?.test_run(frame, 1)
}

/// Refuses machines on which the program would not be right, and takes away what the kernel lacks.
fn check_machine(mode: Mode, growth: &mut Growth) -> Result<(), Error> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Error::Architecture);
    }
    let kernel = KernelVersion::current().map_err(|error| Error::Object(error.to_string()))?;
    if kernel < XDP_SINCE {
        return Err(Error::KernelTooOld("the packet program needs Linux 5.18"));
    }
    if kernel < TCX_SINCE && mode == Mode::Tcx {
        return Err(Error::KernelTooOld("tcx needs Linux 6.6"));
    }
    growth.hand_over &= kernel >= TCX_SINCE && mode != Mode::Tcx;
    Ok(())
}

fn map<'a>(ebpf: &'a Ebpf, name: &'static str) -> Result<BorrowedFd<'a>, Error> {
    match ebpf.map(name) {
        Some(Map::Array(map)) => Ok(map.fd().as_fd()),
        _ => Err(missing(name)),
    }
}

fn xdp(ebpf: &mut Ebpf) -> Result<&mut Xdp, Error> {
    let program = ebpf.program_mut(XDP).ok_or_else(|| missing(XDP))?;
    program.try_into().map_err(from_program)
}

fn classifier<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, Error> {
    let program = ebpf.program_mut(name).ok_or_else(|| missing(name))?;
    program.try_into().map_err(from_program)
}

fn missing(name: &str) -> Error {
    Error::Object(format!("{name} is missing"))
}

fn from_object(error: EbpfError) -> Error {
    match error {
        EbpfError::MapError(MapError::CreateError { io_error, .. }) => {
            Error::from_call("creating a map", io_error)
        }
        EbpfError::MapError(MapError::SyscallError(error)) => {
            Error::from_call("creating a map", error.io_error)
        }
        EbpfError::ProgramError(error) => from_program(error),
        other => Error::Object(other.to_string()),
    }
}

fn from_program(error: ProgramError) -> Error {
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            if log.trim().is_empty() {
                Error::from_call("loading the program", io_error)
            } else if log.contains("prohibited for !root") {
                // CAP_PERFMON is missing.
                Error::NoRights
            } else {
                Error::Verifier(log)
            }
        }
        ProgramError::SyscallError(error) => Error::from_call(error.call, error.io_error),
        other => Error::Object(other.to_string()),
    }
}

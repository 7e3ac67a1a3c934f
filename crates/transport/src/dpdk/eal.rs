//! DPDK's environment (EAL): begun once in a process, with the arguments of the first transport.

#![allow(
    unsafe_code,
    reason = "DPDK is called, and two descriptors are exchanged for a while"
)]

use std::ffi::{CString, c_char, c_int};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use glimmer_base::sync::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};

use super::shim;

/// The name by which EAL knows the program.
const PROGRAM: &str = "glimmer";
/// EAL's levels of logging: 4 are errors, 5 warnings.
const QUIET: &str = "--log-level=4";

/// The arguments with which EAL was begun and its first complaint, or why it does not begin.
static BEGUN: Mutex<Option<Result<Begun, String>>> = Mutex::new(None);

/// EAL has begun.
#[derive(Clone, Debug)]
struct Begun {
    arguments: Vec<String>,
    complaint: Option<String>,
}

/// Begins EAL, unless that is done. Returns what it complained of nevertheless, such as a device
/// that it could not make.
///
/// # Errors
///
/// One line that says what to do.
pub fn begin(arguments: &[String]) -> Result<Option<String>, String> {
    let mut begun = BEGUN.lock();
    let begun = begun.get_or_insert_with(|| {
        let arguments = arguments.to_vec();
        start(&arguments).map(|complaint| Begun {
            arguments,
            complaint,
        })
    });
    match begun {
        Ok(before) if before.arguments == arguments => Ok(before.complaint.clone()),
        Ok(before) => Err(format!(
            "this process has begun DPDK with other arguments ({}); give the same to all",
            before.arguments.join(" ")
        )),
        Err(error) => Err(error.clone()),
    }
}

/// What is given to EAL: the arguments, and what keeps other threads and files from coming into
/// being unless the arguments ask for them.
fn completed(arguments: &[String], core: usize) -> Vec<String> {
    let has = |names: &[&str]| {
        let is_it = |argument: &String| {
            names.iter().any(|name| match name.strip_prefix("--") {
                Some(_) => argument == name || argument.starts_with(&format!("{name}=")),
                None => argument.starts_with(name) && !argument.starts_with("--"),
            })
        };
        arguments.iter().any(is_it)
    };
    let mut all = vec![PROGRAM.to_owned()];
    if !has(&["-l", "-c", "--lcores"]) {
        // Workers are threads of the server's. EAL is to have none beside them. It numbers its own
        // threads from 0 on, and may know fewer numbers than the machine has cores.
        all.push(format!("--lcores=0@{core}"));
    }
    let files = [
        "--in-memory",
        "--no-shconf",
        "--file-prefix",
        "--huge-unlink",
    ];
    if !has(&files) {
        // Nothing stays behind, then. EAL has these two ways, and takes one only with huge pages.
        let without_files = if has(&["--no-huge"]) {
            "--no-shconf"
        } else {
            "--in-memory"
        };
        all.push(without_files.to_owned());
    }
    if !has(&["--telemetry", "--no-telemetry"]) {
        all.push("--no-telemetry".to_owned());
    }
    if !has(&["--log-level"]) {
        all.push(QUIET.to_owned());
    }
    all.extend_from_slice(arguments);
    all
}

/// Whether an argument is a long option, which may be cut short.
fn is_option(argument: &str, option: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    name.len() > "--".len() && option.starts_with(name)
}

/// Whether EAL would print help because of an argument, which another one may follow, and end the
/// process as if all was well.
fn asks_for_help(argument: &str, next: Option<&str>) -> bool {
    let is_short = argument
        .strip_prefix('-')
        .is_some_and(|flags| flags.trim_start_matches('v').starts_with('h'));
    let value = argument.split_once('=').map(|(_, value)| value).or(next);
    let is_of_log = is_option(argument, "--log-level") && value == Some("help");
    is_short || is_of_log || is_option(argument, "--help")
}

/// Begins EAL. Returns its first complaint.
fn start(arguments: &[String]) -> Result<Option<String>, String> {
    if let Some(asks) = arguments.iter().enumerate().find_map(|(at, argument)| {
        let next = arguments.get(at + 1).map(String::as_str);
        asks_for_help(argument, next).then_some(argument)
    }) {
        return Err(format!(
            "{asks} ends the process: see EAL's documentation instead"
        ));
    }
    if arguments.iter().any(|it| is_option(it, "--proc-type")) {
        return Err("the server has its ports for itself: leave --proc-type out".into());
    }
    let core = crate::cores_allowed()
        .ok()
        .and_then(|cores| cores.first().copied());
    let all = completed(arguments, core.unwrap_or(0));
    let given: Result<Vec<CString>, _> = all.into_iter().map(CString::new).collect();
    let given = given.map_err(|_| "an EAL argument has a zero byte".to_owned())?;
    // The thread that begins EAL is bound to a core and known to it, so it is one of its own.
    let begun = std::thread::Builder::new()
        .name("glimmer-dpdk".into())
        .spawn(move || overheard(|| init(given)))
        .and_then(|thread| thread.join().map_err(|_| io::Error::other("it panicked")));
    match begun {
        Err(error) => Err(format!("no thread begins EAL: {error}")),
        Ok((0, said)) => Ok(complaint(&said).map(str::to_owned)),
        Ok((code, said)) => Err(explained(code, &said)),
    }
}

/// Begins EAL. Returns zero, or an error's number.
fn init(arguments: Vec<CString>) -> c_int {
    let count = arguments.len() as c_int;
    let pointers = arguments.into_iter().map(CString::into_raw);
    let pointers: Vec<*mut c_char> = pointers.chain([std::ptr::null_mut()]).collect();
    // SAFETY: there are as many strings, followed by a null pointer. EAL keeps pointers to them, so
    // they are never freed.
    unsafe { shim::glimmer_dpdk_init(count, Vec::leak(pointers).as_mut_ptr()) }
}

/// Runs something while this process's standard output and error go to memory, and returns what was
/// written there, too: EAL has several ways to complain, and prints pages of help after a typo.
fn overheard<T>(run: impl FnOnce() -> T) -> (T, String) {
    let Ok((mut heard, kept)) = divert() else {
        return (run(), String::new());
    };
    let done = run();
    let [out, error] = kept;
    // What cannot be put back stays diverted, which no caller can help.
    let _ = replace(libc::STDOUT_FILENO, out.as_fd());
    let _ = replace(libc::STDERR_FILENO, error.as_fd());
    let mut said = Vec::new();
    let _ = heard.rewind().and_then(|()| heard.read_to_end(&mut said));
    (done, String::from_utf8_lossy(&said).into_owned())
}

fn divert() -> io::Result<(std::fs::File, [OwnedFd; 2])> {
    let heard = memfd_create("eal", MemfdFlags::CLOEXEC)?;
    let kept = [io::stdout().as_fd(), io::stderr().as_fd()].map(|it| it.try_clone_to_owned());
    let [out, error] = kept;
    let kept = [out?, error?];
    replace(libc::STDOUT_FILENO, heard.as_fd())?;
    if let Err(error) = replace(libc::STDERR_FILENO, heard.as_fd()) {
        let _ = replace(libc::STDOUT_FILENO, kept[0].as_fd());
        return Err(error);
    }
    Ok((heard.into(), kept))
}

/// Makes the standard output or error another file.
fn replace(standard: c_int, by: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: nothing owns these two descriptors, so what they are may change.
    match unsafe { libc::dup2(by.as_raw_fd(), standard) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The first line in which EAL or a driver complains: it is nearest to the cause.
fn complaint(said: &str) -> Option<&str> {
    let lines = said.lines().map(str::trim);
    // Such as `EAL: ...`, `vdev_probe(): ...`.
    let complains = |line: &&str| {
        let (who, what) = line.split_once(": ").unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_()".contains(&byte);
        !who.is_empty() && who.bytes().all(is_name) && !what.is_empty()
    };
    let is_sum = |line: &&str| line.contains("FATAL");
    let mut all = lines.filter(complains);
    all.clone().find(|line| !is_sum(line)).or(all.find(is_sum))
}

/// One line of what EAL said when it failed, and what to do.
fn explained(code: c_int, said: &str) -> String {
    let reason = match complaint(said) {
        Some(line) => line.replace("glimmer: ", ""),
        None => io::Error::from_raw_os_error(code).to_string(),
    };
    let has = |part: &str| reason.contains(part);
    let help = if has("hugepage") || has("huge page") {
        "reserve huge pages with `sysctl vm.nr_hugepages=512`, or give --no-huge -m 256"
    } else if code == libc::EACCES || code == libc::EPERM || has("ermission") {
        "start as root, and give another user with -u"
    } else {
        "the documentation of EAL explains its arguments"
    };
    format!("{}; {help}", reason.trim_end_matches('.'))
}

/// Makes this thread known to DPDK, if it is not yet, so that it keeps some free frames for itself.
/// A thread that DPDK has no number for works without.
#[inline]
pub fn enter() {
    struct Known;
    impl Drop for Known {
        fn drop(&mut self) {
            // SAFETY: this thread has registered itself, and ends.
            unsafe { shim::rte_thread_unregister() };
        }
    }
    thread_local! {
        static KNOWN: Option<Known> = {
            // SAFETY: EAL has begun, as there is a port; it does not know this thread yet, which
            // comes here once.
            let is_known = unsafe { shim::rte_thread_register() } == 0;
            is_known.then_some(Known)
        };
    }
    // A thread that is ending does without.
    let _ = KNOWN.try_with(|_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_given_stays() {
        let plain = completed(&words("--no-huge"), 3);
        let expected = "glimmer --lcores=0@3 --no-shconf --no-telemetry --log-level=4 --no-huge";
        assert_eq!(plain, words(expected));
        assert!(completed(&words("-a 00:1"), 3).contains(&"--in-memory".to_owned()));
        let full = "-l1 --file-prefix=x --telemetry --log-level 8";
        assert_eq!(
            completed(&words(full), 3),
            words(&format!("glimmer {full}"))
        );
        let others = completed(&words("--legacy-mem --lcores (0)@1"), 3);
        assert!(!others.contains(&"--lcores=0@3".to_owned()), "{others:?}");
        assert!(completed(&[], 200).contains(&"--lcores=0@200".to_owned()));
        // Cores of EAL's services are others.
        assert!(completed(&words("-s 2"), 3).contains(&"--lcores=0@3".to_owned()));
    }

    #[test]
    fn a_failure_is_one_line_with_what_to_do() {
        for (code, said, parts) in [
            (
                libc::EACCES,
                "EAL: FATAL: Cannot get hugepage information.\n",
                "nr_hugepages",
            ),
            (
                libc::EINVAL,
                "usage\nEAL: FATAL: Invalid 'command line' arguments.\n",
                "explains",
            ),
            (
                libc::ENODEV,
                "x\nvdev_probe(): failed to initialize net_x device\nEAL: FATAL: x",
                "net_x",
            ),
            (libc::EPERM, "", "root"),
        ] {
            let line = explained(code, said);
            assert!(line.contains(parts) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn what_would_end_the_process_is_refused() {
        for other in ["--proc-type=secondary", "--proc-t auto"] {
            let error = start(&words(other)).unwrap_err();
            assert!(error.contains("leave --proc-type out"), "{other}: {error}");
        }
        for help in [
            "-h",
            "-vh",
            "--help",
            "--hel",
            "--log-level=help",
            "--log-level help",
            "--no-huge --log-l=help",
        ] {
            let error = start(&words(help)).unwrap_err();
            assert!(error.contains("ends the process"), "{help}: {error}");
        }
        for fine in ["--log-level=8", "--huge-unlink", "--no-huge", "-v", "--"] {
            assert!(!asks_for_help(fine, Some("8")), "{fine}");
        }
    }
}

//! Tests of what a machine may lack: rights, namespaces, programs.

/// Whether the test can run. If something is missing, it is skipped and says so, except in
/// continuous integration, where everything has to be there.
pub fn can_run<T, E: std::fmt::Display>(check: Result<T, E>) -> bool {
    match check {
        Ok(_) => true,
        Err(missing) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("in continuous integration nothing is skipped: {missing:#}")
        }
        Err(missing) => {
            println!("SKIPPED: {missing:#}");
            false
        }
    }
}

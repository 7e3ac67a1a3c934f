//! Gives the shared library its soname, so that a program asks the loader for the interface that it
//! was built for.

/// Raised when a program that was built before would not run with the library any more.
const INTERFACE: u32 = 0;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let soname = format!("libglimmerclient.so.{INTERFACE}");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    }
    if std::env::var("CARGO_CFG_PANIC").is_ok_and(|panic| panic == "abort") {
        let advice = "build it with --profile library";
        println!("cargo::warning=in this profile a bug in the library ends the process: {advice}");
    }
}

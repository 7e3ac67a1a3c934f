//! Sets the shared library's soname, so that the loader gives a program the interface version that
//! it was built for.

/// The interface version. It is increased when programs built earlier would no longer run with the
/// library.
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

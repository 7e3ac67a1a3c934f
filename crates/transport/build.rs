//! Compiles what of DPDK can be called from C only, if the feature `dpdk` is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::Command;

    const SHIM: &str = "src/dpdk/shim.c";
    /// The libraries that are called. EAL loads drivers by itself.
    const LIBRARIES: [&str; 5] = [
        "rte_eal",
        "rte_ethdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
    ];

    pub fn build() {
        println!("cargo::rerun-if-changed={SHIM}");
        println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
        let mut compiler = cc::Build::new();
        compiler.file(SHIM).warnings(true).opt_level(3);
        for flag in asked(&["--cflags"]) {
            compiler.flag(flag);
        }
        compiler.compile("glimmer_dpdk_shim");
        for flag in asked(&["--libs-only-L"]) {
            println!(
                "cargo::rustc-link-search=native={}",
                flag.trim_start_matches("-L")
            );
        }
        for library in LIBRARIES {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
    }

    /// What pkg-config says of DPDK.
    fn asked(question: &[&str]) -> Vec<String> {
        let missing = "the feature `dpdk` needs DPDK 22.11 or newer: apt-get install libdpdk-dev \
                       pkg-config";
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.args(question).arg("libdpdk >= 22.11");
        let output = pkg_config.output().unwrap_or_else(|error| {
            panic!("{missing} (pkg-config: {error})");
        });
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{missing} ({})", said.trim());
        let flags = String::from_utf8_lossy(&output.stdout);
        flags.split_whitespace().map(str::to_owned).collect()
    }
}

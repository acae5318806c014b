//! Compiles the programs of `bpf/` with clang, if the feature `bpf` is on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "bpf")]
    bpf::compile();
}

#[cfg(feature = "bpf")]
mod bpf {
    use libbpf_cargo::SkeletonBuilder;
    use std::path::{Path, PathBuf};

    /// Files in `bpf/`, and the variable that names the object of each.
    const PROGRAMS: [(&str, &str); 9] = [
        ("bbr_low_delay", "KNEE_BPF_BBR_LOW_DELAY"),
        ("bbr_replay", "KNEE_BPF_BBR_REPLAY"),
        ("bbr3", "KNEE_BPF_BBR3"),
        ("bbr3_replay", "KNEE_BPF_BBR3_REPLAY"),
        ("copa", "KNEE_BPF_COPA"),
        ("copa_replay", "KNEE_BPF_COPA_REPLAY"),
        ("fixed", "KNEE_BPF_FIXED"),
        ("observe", "KNEE_BPF_OBSERVE"),
        ("steer", "KNEE_BPF_STEER"),
    ];

    pub fn compile() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        println!("cargo:rerun-if-changed={}", sources.display());
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
        for (name, variable) in PROGRAMS {
            let object = out.join(format!("{name}.o"));
            // v3 has compare-and-swap and 32-bit comparisons.
            let built = SkeletonBuilder::new()
                .source(sources.join(format!("{name}.bpf.c")))
                .obj(&object)
                .clang_args(["-mcpu=v3", "-Wall", "-Wno-unused-function"])
                .build();
            if let Err(error) = built {
                let reason = format!("{error:#}").replace('\n', " ");
                println!(
                    "cargo::error=cannot compile bpf/{name}.bpf.c; the feature `bpf` needs clang: \
                     apt-get install clang libelf-dev zlib1g-dev pkg-config ({reason})"
                );
                continue;
            }
            println!("cargo:rustc-env={variable}={}", object.display());
        }
    }
}

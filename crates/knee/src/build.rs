//! Identity of this build of Knee, as determined by `build.rs` beside the crate.

use knee_lab::program_hash;
use knee_record::Program;
use std::sync::OnceLock;

/// Output of `knee --version`: `0.1.0 (commit …; features: bpf,live)`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("KNEE_BUILD"), ")");

/// Features of this build, separated by commas.
pub const FEATURES: &str = env!("KNEE_FEATURES");

/// The command that installs a build with the features of this one and one more.
pub fn with(feature: &str) -> String {
    let mut all: Vec<&str> = FEATURES.split(',').filter(|name| !name.is_empty()).collect();
    all.push(feature);
    all.sort_unstable();
    all.dedup();
    format!("cargo install --path crates/knee --features {}", all.join(","))
}

/// The build, for manifests.
pub fn program() -> Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(detect).clone()
}

fn detect() -> Program {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let features = FEATURES.split(',').filter(|name| !name.is_empty());
    Program {
        commit: known(env!("KNEE_COMMIT")),
        sha256: program_hash().ok(),
        features: features.map(str::to_string).collect(),
        toolchain: known(env!("KNEE_TOOLCHAIN")),
        target: known(env!("KNEE_TARGET")),
    }
}

//! Identity of this build of Knee, as determined by `build.rs` beside the crate.

use knee_lab::program_hash;
use knee_record::Program;

/// Output of `knee --version`: `0.1.0 (commit …)`.
pub const VERSION: &str = match env!("KNEE_COMMIT").is_empty() {
    true => concat!(env!("CARGO_PKG_VERSION"), " (built outside git)"),
    false => concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("KNEE_COMMIT"), ")"),
};

/// The build, for manifests.
pub fn program() -> Program {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let features = env!("KNEE_FEATURES").split(',').filter(|name| !name.is_empty());
    Program {
        commit: known(env!("KNEE_COMMIT")),
        sha256: program_hash().ok(),
        features: features.map(str::to_string).collect(),
        toolchain: known(env!("KNEE_TOOLCHAIN")),
        target: known(env!("KNEE_TARGET")),
    }
}

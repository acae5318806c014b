//! Embeds commit, features and compiler version in the program.
//!
//! Only this crate is rebuilt at a commit: the slow crates below it do not depend on it. Outside a
//! checkout there is no commit; packagers of the sources can set one in `KNEE_COMMIT`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Sources of the program, relative to the root of the workspace.
const SOURCES: [&str; 4] = ["crates", "studies", "bpf", "Cargo.lock"];

fn main() {
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-env-changed=KNEE_COMMIT");
    watch_sources(&root);
    let given = env::var("KNEE_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let (commit, features) = (given.or_else(|| commit(&root)).unwrap_or_default(), features());
    set("KNEE_COMMIT", &commit);
    set("KNEE_FEATURES", &features);
    set("KNEE_BUILD", &build(&commit, &features));
    set(
        "KNEE_TOOLCHAIN",
        &said(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default(),
    );
    set("KNEE_TARGET", &variable("TARGET"));
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env={name}={value}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Reruns this script when sources change, since that may mean uncommitted changes. Tests are not
/// part of the program.
fn watch_sources(root: &Path) {
    let watch = |path: &Path| println!("cargo::rerun-if-changed={}", path.display());
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    crates.map(|entry| entry.path().join("src")).filter(|src| src.is_dir()).for_each(|s| watch(&s));
    let others = SOURCES[1..].iter().map(|name| root.join(name));
    others.filter(|path| path.exists()).for_each(|path| watch(&path));
}

/// The current commit; `None` outside a checkout of these sources, or without git.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| said(Command::new("git").current_dir(root).args(arguments));
    // The sources may be unpacked inside another checkout.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // One of these changes with every checkout.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-modified") })
}

/// Enabled features of this crate, separated by commas.
fn features() -> String {
    let on = env::vars().filter_map(|(name, _)| {
        let name = name.strip_prefix("CARGO_FEATURE_")?.to_ascii_lowercase().replace('_', "-");
        (name != "default").then_some(name)
    });
    let mut on: Vec<String> = on.collect();
    on.sort();
    on.join(",")
}

/// What `knee --version` says beside the number.
fn build(commit: &str, features: &str) -> String {
    let commit = match commit {
        "" => "built outside git".to_string(),
        commit => format!("commit {commit}"),
    };
    match features {
        "" => format!("{commit}; no features"),
        features => format!("{commit}; features: {features}"),
    }
}

/// Output of a command; `None` if it cannot run or fails.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

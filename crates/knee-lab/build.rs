//! Embeds all files below `studies/`, `suites/` and `evaluation/` in the program, so that they work
//! without a checkout.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    embed("studies")?;
    embed("suites")?;
    embed("evaluation")
}

/// Writes `FOLDER.rs` with all files below that folder of the workspace.
fn embed(folder: &str) -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../..")
        .join(folder);
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        let root = root.canonicalize()?;
        collect(&root, &root, &mut files)?;
    }
    files.sort();
    let mut code = String::from("pub static FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("strings take all");
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join(format!("{folder}.rs")), code)
}

/// Collects names below `root`, with `/`, and paths. Skips hidden files and Knee's own output.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "knee-out" || name.ends_with(".md") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(below) = path.strip_prefix(root) {
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            files.push((parts.join("/"), path.clone()));
        }
    }
    Ok(())
}

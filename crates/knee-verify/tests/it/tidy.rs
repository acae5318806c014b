//! Rules about the source itself that no lint checks.

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 700;
const TEXT: [&str; 9] = ["rs", "toml", "md", "py", "sh", "cc", "js", "css", "html"];
/// Folders that are not part of the project.
const SKIPPED: [&str; 5] = ["target", ".git", "node_modules", "vendor", "knee-out"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn crates() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let folders = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut crates: Vec<_> = folders.filter(|path| path.join("Cargo.toml").exists()).collect();
    crates.sort();
    assert!(crates.len() > 5, "{crates:?}");
    crates
}

/// Files below `folder` whose name ends in one of these.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                files(&path, endings, found);
            }
        } else if endings.contains(&ending.as_str()) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in crates() {
        files(&folder.join("src"), &["rs"], &mut found);
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn no_source_file_is_too_long_to_read() {
    for path in sources() {
        let lines = read(&path).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn nothing_is_left_to_do() {
    for path in sources() {
        let text = read(&path);
        for word in ["todo!(", "unimplemented!(", "FIXME", "XXX"] {
            assert!(!text.contains(word), "{} contains {word}", path.display());
        }
    }
}

#[test]
fn no_line_ends_in_white_space() {
    let mut found = Vec::new();
    files(&root(), &TEXT, &mut found);
    for path in found {
        // Generated or third-party files.
        let generated = [".min.js", ".min.css"];
        if generated.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            continue;
        }
        for (index, line) in read(&path).lines().enumerate() {
            assert_eq!(line, line.trim_end(), "{}, line {}", path.display(), index + 1);
        }
    }
}

#[test]
fn every_library_says_what_it_never_does() {
    for path in crates().iter().map(|folder| folder.join("src/lib.rs")) {
        // The command line is not a library.
        if !path.exists() {
            continue;
        }
        let text = read(&path);
        let docs: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(docs.iter().any(|line| line.contains("never")), "{}", path.display());
    }
}

/// `cargo test` starts a compiler for the examples of each crate, also where there are none.
#[test]
fn examples_in_docs_are_run_and_nothing_else_is_compiled_for_them() {
    for folder in crates() {
        let (mut found, mut examples) = (Vec::new(), false);
        files(&folder.join("src"), &["rs"], &mut found);
        for path in found {
            let text = read(&path);
            let mut fences = text.lines().filter_map(|line| {
                let line = line.trim_start();
                line.strip_prefix("/// ```").or_else(|| line.strip_prefix("//! ```"))
            });
            // Every second fence ends a block.
            let others = |kind: &str| matches!(kind, "text" | "toml" | "sh" | "json");
            while let Some(kind) = fences.next() {
                examples |= !others(kind);
                fences.next();
            }
            examples |= text.contains("cfg(doctest)");
        }
        let manifest = read(&folder.join("Cargo.toml"));
        assert_eq!(manifest.contains("doctest = false"), !examples, "{}", folder.display());
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for folder in crates() {
        let manifest = read(&folder.join("Cargo.toml"));
        // One crate calls the kernel, in one file; it sets its lints itself.
        if folder.ends_with("knee-host") {
            let own = read(&root().join("Cargo.toml"));
            let of_workspace = own.split("[workspace.lints.clippy]\n").nth(1).unwrap_or_default();
            let lints = of_workspace.lines().take_while(|line| !line.is_empty());
            let missing: Vec<&str> = lints.filter(|lint| !manifest.contains(lint)).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", folder.display());
            assert!(manifest.contains("unsafe_code = \"deny\""), "{}", folder.display());
            continue;
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", folder.display());
    }
}

/// Returns the dependencies of a crate, without those of its tests, one per line.
fn dependencies(manifest: &str) -> &str {
    let table = manifest.split("\n[dependencies]").nth(1).expect("the table is there");
    table.split("\n[").next().unwrap_or_default().trim()
}

#[test]
fn unsafe_code_has_one_place() {
    let home = root().join("crates/knee-host/src/system.rs");
    let allows = |path: &PathBuf| read(path).contains("allow(unsafe_code)");
    let found: Vec<PathBuf> = sources().into_iter().filter(allows).collect();
    assert_eq!(found, [home]);
}

#[test]
fn what_touches_the_host_knows_no_scenario() {
    for name in ["knee-host", "knee-emulator"] {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        for other in ["knee-scenario", "knee-record", "knee-testbed", "knee-kernel"] {
            assert!(!dependencies(&manifest).contains(other), "{name} depends on {other}");
        }
    }
}

#[test]
fn the_verifier_depends_on_nothing() {
    let manifest = read(&root().join("crates/knee-verify/Cargo.toml"));
    assert_eq!(dependencies(&manifest), "");
    assert!(!manifest.contains("dev-dependencies") && !manifest.contains("build-dependencies"));
}

/// Names that nobody outside of this project would look for, with what the field says.
const DIALECT: [(&str, &str); 15] = [
    ("Way", "CheckedPath, ClientHandle, Direction"),
    ("Shot", "Snapshot"),
    ("Tape", "Trace, DecisionQueue"),
    ("errand", "stream, request"),
    ("attend", "serve_stream, process_timers"),
    ("heed", "apply"),
    ("sit", "run"),
    ("PATIENCE", "TIMEOUT"),
    ("RESPITE", "RETRY_DELAY, GRACE_PERIOD"),
    ("PARTING", "CLOSE_TIMEOUT"),
    ("LAST_BREATH", "EXIT_TIMEOUT"),
    ("Mood", "Tone"),
    ("Company", "Competition"),
    ("Made", "what was made: an object, a run, a row"),
    ("Told", "Event, Report"),
];

/// The words that a line of Rust has outside of comments.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[test]
fn names_are_those_of_the_field() {
    let mut found = Vec::new();
    for path in sources() {
        for (index, line) in read(&path).lines().enumerate() {
            // In a text, "sit" is a word.
            let named = |word: &str| DIALECT.iter().find(|(name, _)| *name == word);
            let names = words(line.split('"').next().unwrap_or_default());
            found.extend(names.filter_map(named).map(|(name, instead)| {
                format!("{}:{}: {name}: write {instead}", path.display(), index + 1)
            }));
        }
    }
    assert!(found.is_empty(), "docs/words.md has the words to use\n{}", found.join("\n"));
}

#[test]
fn every_word_is_listed_once() {
    let text = read(&root().join("docs/words.md"));
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let words: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    let [head, words @ ..] = &words[..] else { panic!("docs/words.md has no table") };
    assert_eq!((*head, words.len()), ("word", 30));
    assert!(words.is_sorted_by_key(|word| word.to_lowercase()), "{words:?}");
}

#[test]
fn the_readme_and_ci_run_the_same_test_command() {
    let command = "cargo test --workspace";
    assert!(read(&root().join("README.md")).contains(command));
    assert!(read(&root().join(".ci/run")).contains(command));
}

/// What a stranger reads first stays short: README in lines, and the changes of a version.
#[test]
fn what_a_stranger_reads_first_is_short() {
    let readme = read(&root().join("README.md")).lines().count();
    assert!(readme <= 150, "README.md has {readme} lines");
    let changes = read(&root().join("CHANGELOG.md"));
    let (_, first) = changes.split_once("\n## 0.1.0").expect("the changes begin with 0.1.0");
    let lines = first.lines().count();
    assert!(lines <= 60, "the changes of 0.1.0 have {lines} lines");
}

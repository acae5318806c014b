//! Provenance of a folder, and `knee rerun`.

use crate::common::{SMALL, complaint, expect, folder_with, json, run, texts};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Output of another program; `None` if it fails or is missing.
fn said(program: &str, arguments: &[&str], at: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(at).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| text.trim().to_string())
}

/// The manifest identifies the build as git and sha256sum do.
#[test]
fn the_manifest_names_the_build() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out out", 0);
    let program = json(&at.join("out/manifest.json"))["program"].clone();
    let sum = said("sha256sum", &[env!("CARGO_BIN_EXE_knee")], at).unwrap();
    assert_eq!(program["sha256"].as_str(), sum.split_whitespace().next());
    assert!(program["toolchain"].as_str().unwrap().starts_with("rustc 1."), "{program}");
    let version = expect(at, "--version", 0);
    assert!(version.starts_with(&format!("knee {}", env!("CARGO_PKG_VERSION"))), "{version}");
    match program["commit"].as_str() {
        Some(commit) => {
            let hash = commit.trim_end_matches("-modified");
            let known = said("git", &["rev-parse", "HEAD"], Path::new(env!("CARGO_MANIFEST_DIR")));
            assert!(known.is_none_or(|known| known == hash), "{commit}");
            assert!(version.contains(commit), "{version}");
        }
        None => assert!(version.contains("built outside git"), "{version}"),
    }
}

/// The build script outside git, at a commit, with changes, inside another checkout, and with a
/// given commit.
#[test]
fn the_build_script_finds_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    said(&rustc, &["--edition", "2024", "-o", "script", script], at).unwrap();
    let root = at.join("root");
    fs::create_dir_all(root.join("crates/knee/src")).unwrap();
    let with = |root: &Path, given: &str| {
        let output = Command::new(at.join("script"))
            .env("CARGO_MANIFEST_DIR", root.join("crates/knee"))
            .env("CARGO_FEATURE_DEFAULT", "1")
            .env("CARGO_FEATURE_BPF", "1")
            .env("RUSTC", &rustc)
            .env("TARGET", "t")
            .env("GIT_CEILING_DIRECTORIES", at.parent().unwrap())
            .env("KNEE_COMMIT", given)
            .output()
            .unwrap();
        assert!(output.status.success(), "{:?}", texts(&output));
        let lines = texts(&output).0;
        assert!(lines.contains("KNEE_FEATURES=bpf\n"), "{lines}");
        let commit = lines.lines().find_map(|l| l.strip_prefix("cargo::rustc-env=KNEE_COMMIT="));
        commit.unwrap().to_string()
    };
    assert_eq!(with(&root, ""), "");
    assert_eq!(with(&root, "v1"), "v1");
    let git = |line: &str, at: &Path| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        said("git", &[&identity[..], &line.split(' ').collect::<Vec<_>>()].concat(), at).unwrap()
    };
    fs::write(root.join("crates/knee/src/main.rs"), "").unwrap();
    git("init -q", &root);
    git("add .", &root);
    git("commit -q -m first", &root);
    let commit = git("rev-parse HEAD", &root);
    assert_eq!(with(&root, ""), commit);
    fs::write(root.join("crates/knee/src/main.rs"), "fn main() {}").unwrap();
    assert_eq!(with(&root, ""), format!("{commit}-modified"));
    // Sources unpacked into the checkout do not belong to its commit.
    fs::create_dir_all(root.join("vendor/knee/crates/knee/src")).unwrap();
    assert_eq!(with(&root.join("vendor/knee"), ""), "");
}

/// A scenario with a recorded link in a subfolder.
fn recorded() -> tempfile::TempDir {
    let text = SMALL.replace("rate = \"10 Mbit/s\"", "rate = { trace = \"t/up.txt\" }");
    let folder = folder_with("a.toml", &text.replace("2 BDP", "60 kB"));
    fs::create_dir(folder.path().join("t")).unwrap();
    fs::write(folder.path().join("t/up.txt"), "1\n2\n4\n5\n").unwrap();
    folder
}

/// Runs, repeats, sweeps and rankings are reproduced from their folders alone.
#[test]
fn folders_run_again_to_the_same_bytes() {
    let folder = recorded();
    let at = folder.path();
    let before = |at: &Path| {
        expect(at, "run a.toml --out one --set flow.bbr.cc=reno --seed 8 --packet-log", 0);
        expect(at, "run a.toml --out three --repeat 3", 0);
        let vary = "--vary flow.bbr.cc=bbr,reno --vary link.bottleneck.rate.trace=t/up.txt,t/b.txt";
        expect(at, &format!("sweep a.toml {vary} --set duration=2.5s --repeat 2 --out swept"), 0);
        expect(at, "rank a.toml --cc reno,bbr --against cubic --repeat 2 --out ranked", 0);
    };
    fs::write(at.join("t/b.txt"), "1\n3\n").unwrap();
    before(at);
    fs::remove_file(at.join("a.toml")).unwrap();
    fs::remove_dir_all(at.join("t")).unwrap();
    for (folder, records) in [("one", 7), ("three", 19), ("swept", 2), ("ranked", 2)] {
        let printed = expect(at, &format!("rerun {folder} --out {folder}-again"), 0);
        let same = format!("Identical: {records} of {records} records.");
        assert!(printed.contains(&same), "{folder}: {printed}");
        assert!(!printed.contains("changed"), "{folder}: {printed}");
    }
    // Without --out, an unused directory is chosen.
    for out in ["knee-out/rerun-one", "knee-out/rerun-one-2"] {
        let printed = expect(at, "rerun one", 0);
        assert!(printed.contains(&format!("again    {out}\n")), "{printed}");
    }
}

/// Differences are reported: records with their numbers, build, inputs.
#[test]
fn what_differs_is_named() {
    let folder = recorded();
    let at = folder.path();
    expect(at, "run a.toml --out out", 0);
    let edit = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(at.join(file)).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        fs::write(at.join(file), text.replace(from, to)).unwrap();
    };
    let jain = json(&at.join("out/summary.json"))["measures"]["jain"].to_string();
    edit("out/summary.json", &jain, "0.25");
    edit("out/manifest.json", "\"version\": \"", "\"version\": \"9.");
    fs::write(at.join("a.toml"), SMALL).unwrap();
    fs::remove_file(at.join("out/flows.parquet")).unwrap();
    let printed = expect(at, "rerun out --out again --originals", 1);
    for part in ["2 of 6 records", "jain", "0.25", "flows.parquet", "new", "version", "a.toml"] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    assert!(!printed.contains("toolchain"), "{printed}");
    let document = expect(at, "rerun out --out once-more --json --originals", 1);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!((&document["schema"], &document["same"]), (&"knee-rerun/1".into(), &false.into()));
    let changed = document["changed"].as_array().unwrap();
    let changed: Vec<&str> = changed.iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(changed, ["version", "a.toml"]);
    // The copy is used, and its change is reported.
    edit("out/inputs/up.txt", "5\n", "9\n");
    let printed = expect(at, "rerun out --out with-another-trace", 1);
    assert!(printed.contains("inputs/up.txt") && printed.contains("bottleneck.drops"), "{printed}");
}

#[test]
fn what_cannot_run_again_says_why() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    assert!(complaint(at, "rerun .", 2).contains("no run, no repeats"));
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --out old", 0);
    fs::remove_file(at.join("old/origin.json")).unwrap();
    assert!(complaint(at, "rerun old", 2).contains("an earlier version"));
    // Names that lead out of the folder are not followed.
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --out evil", 0);
    let text = fs::read_to_string(at.join("evil/origin.json")).unwrap();
    fs::write(at.join("evil/origin.json"), text.replace("inputs/a.toml", "inputs/../../a.toml"))
        .unwrap();
    assert!(complaint(at, "rerun evil", 3).contains("points outside the folder"));
}

/// The command of a run omits what the run omitted.
#[test]
fn the_line_has_what_changes_the_run() {
    let folder = folder_with("a.toml", SMALL);
    let output = run(folder.path(), "run a.toml --no-alternatives --packet-log --repeat 2");
    let (out, err) = texts(&output);
    let line = out.lines().find_map(|line| line.strip_prefix("repeat   ")).unwrap_or(&err);
    let expected = "knee run a.toml --seed 5 --repeat 2 --no-alternatives --packet-log";
    assert_eq!(line, expected);
}

/// A citation that follows the file names this version.
#[test]
fn the_citation_names_this_version() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CITATION.cff");
    let text = fs::read_to_string(path).unwrap();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
        line.unwrap_or_else(|| panic!("{key}")).trim_matches('"').to_string()
    };
    assert_eq!(value("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!((value("cff-version").as_str(), value("type").as_str()), ("1.2.0", "software"));
    // Every page has the version.
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out run", 0);
    expect(at, "run a.toml --repeat 2 --out repeat", 0);
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --out sweep", 0);
    expect(at, "rank a.toml --cc bbr,reno --out rank", 0);
    for name in ["run", "repeat", "sweep", "rank"] {
        let page = fs::read_to_string(at.join(name).join("report.html")).unwrap();
        assert!(page.contains("To cite: The Knee authors"), "{name}");
    }
}

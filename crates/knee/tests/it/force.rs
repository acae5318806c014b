//! Where a run writes: never through links, and regardless of a killed run's leftovers.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, expect, folder_with, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Contents that must not change.
const PRECIOUS: &str = "precious";

const WRITTEN: [&str; 9] = [
    "manifest.json",
    "scenario.toml",
    "flows.parquet",
    "samples.parquet",
    "links.parquet",
    "path-samples.parquet",
    "summary.json",
    "report.html",
    "packets.csv",
];

fn assert_unharmed(victim: &Path, what: &str) {
    assert_eq!(fs::read_to_string(victim).unwrap(), PRECIOUS, "{what}");
}

/// Links in place of every file that a run writes, finished or partial.
#[test]
fn links_to_files_are_replaced() {
    for hard in [true, false] {
        let folder = folder_with("a.toml", SMALL);
        let at = folder.path();
        let victim = at.join("victim");
        fs::write(&victim, PRECIOUS).unwrap();
        fs::create_dir(at.join("o")).unwrap();
        for name in WRITTEN.iter().flat_map(|name| [name.to_string(), format!("{name}.part")]) {
            let place = at.join("o").join(name);
            if hard { fs::hard_link(&victim, place) } else { symlink(&victim, place) }.unwrap();
        }
        expect(at, "run a.toml --out o --packet-log --force", 0);
        assert_unharmed(&victim, "run");
        assert!(fs::symlink_metadata(at.join("o/packets.csv")).unwrap().is_file());
        fs::remove_file(at.join("o/report.html")).unwrap();
        symlink(&victim, at.join("o/report.html.part")).unwrap();
        expect(at, "report o", 0);
        assert_unharmed(&victim, "report");
        if hard {
            fs::hard_link(&victim, at.join("new"))
        } else {
            symlink(&victim, at.join("new"))
        }
        .unwrap();
        expect(at, "init new --force", 0);
        assert_unharmed(&victim, "init");
    }
}

/// Links in place of the folders that a command creates.
#[test]
fn links_to_folders_are_not_followed() {
    let folder = folder_with("a.toml", &format!("{SMALL}{MIX}"));
    let at = folder.path();
    fs::write(at.join("log.csv"), "bytes\n1000\n").unwrap();
    fs::create_dir(at.join("study")).unwrap();
    let study = "name = \"A\"\nsource = \"B\"\n[[run]]\nname = \"a\"\nfile = \"b.toml\"\n";
    fs::write(at.join("study/study.toml"), study).unwrap();
    fs::write(at.join("study/b.toml"), SMALL).unwrap();
    let elsewhere = at.join("elsewhere");
    fs::create_dir_all(elsewhere.join("a")).unwrap();
    for name in ["manifest.json", "samples.parquet", "log.csv", "0.json", "a/manifest.json"] {
        fs::write(elsewhere.join(name), PRECIOUS).unwrap();
    }
    let lines = [
        ("inputs", "run a.toml --out OUT --force"),
        ("repeat-1", "run a.toml --repeat 2 --out OUT --force"),
        ("runs", "sweep a.toml --vary flow.bbr.cc=bbr,reno --out OUT --force"),
        ("study", "reproduce ./study --out OUT --force"),
        ("a", "run a.toml study/b.toml --out OUT --force"),
    ];
    for (number, (link, line)) in lines.into_iter().enumerate() {
        let out = format!("out-{number}");
        fs::create_dir(at.join(&out)).unwrap();
        symlink(&elsewhere, at.join(&out).join(link)).unwrap();
        expect(at, &line.replace("OUT", &out), 0);
        assert!(fs::symlink_metadata(at.join(&out).join(link)).unwrap().is_dir(), "{link}");
        let mut left: Vec<_> =
            fs::read_dir(&elsewhere).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0.json", "a", "log.csv", "manifest.json", "samples.parquet"], "{line}");
        for name in ["manifest.json", "samples.parquet", "log.csv", "0.json", "a/manifest.json"] {
            assert_unharmed(&elsewhere.join(name), line);
        }
    }
}

const MIX: &str = "[[flow]]\nname = \"mix\"\ncc = \"reno\"\nworkload = { mix = { \
                   arrival_interval = \"500 ms\", sizes = { log = \"log.csv\" } } }\n";

/// Names and bytes of all files below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(contents(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

/// What a command reads is never replaced by what it writes.
#[test]
fn sources_are_not_replaced() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --repeat 2 --out out/a", 0);
    expect(at, "run a.toml --repeat 2 --seed 9 --out out/b", 0);
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --out out/s", 0);
    symlink(at.join("out/a"), at.join("same")).unwrap();
    let before = contents(&at.join("out"));
    for line in [
        "rerun out/a --out out/a --force",
        "rerun same/repeat-1 --out out/./a/repeat-1 --force",
        "rerun out/a --out out/a/repeat-2 --force",
        "rerun out/a/repeat-1 --out out/a --force",
        "rerun out/s --out out/s/inputs --force",
        "compare out/a/repeat-1 out/b/repeat-1 --out out/b/repeat-1 --force",
        "compare out/s@cc=bbr out/s@cc=reno --out out/s --force",
        "advise out/a/repeat-1 --out out/a/repeat-1 --force",
    ] {
        let said = complaint(at, line, 2);
        assert!(said.contains("would be replaced") && said.contains("--out DIR"), "{said}");
        assert!(contents(&at.join("out")) == before, "{line}");
    }
    // A new folder in a source replaces nothing.
    expect(at, "rerun out/a --out out/a/again", 0);
}

/// Unfinished files of a killed run do not block the next; other files do.
#[test]
fn leftovers_of_a_killed_run_are_no_obstacle() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    for line in
        ["run a.toml --packet-log --out o", "sweep a.toml --vary flow.bbr.cc=bbr,reno --out s"]
    {
        let out = at.join(line.split(' ').next_back().unwrap());
        fs::create_dir(&out).unwrap();
        for name in [
            "samples.parquet.part",
            "path-samples.parquet.part",
            "sweep.json.part",
            "packets.csv.part",
        ] {
            fs::write(out.join(name), "PAR1").unwrap();
        }
        expect(at, line, 0);
        let left = fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name());
        let left: Vec<_> = left.filter(|n| n.to_string_lossy().ends_with(".part")).collect();
        assert!(left.is_empty(), "{line}: {left:?}");
    }
    fs::create_dir(at.join("mine")).unwrap();
    fs::write(at.join("mine/notes.part"), "keep").unwrap();
    let said = complaint(at, "run a.toml --out mine", 2);
    assert!(said.contains("not empty"), "{said}");
}

/// A run of a sweep is identified by its contents, not by its file name.
#[test]
fn a_run_under_the_name_of_another_is_done_again() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let sweep = "sweep a.toml --vary flow.bbr.cc=bbr,reno --out o";
    expect(at, sweep, 0);
    let runs = || {
        let entries = fs::read_dir(at.join("o/runs")).unwrap();
        let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    };
    let [one, other] = &runs()[..] else { panic!("two runs") };
    let document = fs::read(at.join("o/sweep.parquet")).unwrap();
    let point = |path: &Path| json(path)["point"].clone();
    let before = point(other);
    fs::copy(one, other).unwrap();
    expect(at, sweep, 0);
    assert_eq!(point(other), before);
    assert!(fs::read(at.join("o/sweep.parquet")).unwrap() == document);
    // A summary of another run is not accepted either.
    expect(at, "run a.toml --out run", 0);
    fs::copy(at.join("run/summary.json"), other).unwrap();
    expect(at, sweep, 0);
    assert_eq!(point(other), before);
}

//! A host that lacks something: one clear sentence and exit code 3.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, folder_with, knee, texts};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

fn assert_one_sentence(said: &str, parts: &[&str]) {
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.starts_with("error: "), "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

/// Root ignores permission bits, but even root cannot create entries below a file.
#[test]
fn a_folder_that_cannot_be() {
    let folder = folder_with("a.toml", SMALL);
    for line in ["run a.toml --out /dev/null/x", "run a.toml --out a.toml"] {
        let said = complaint(folder.path(), line, 3);
        assert_one_sentence(&said, &["cannot write", "--out DIR"]);
    }
    let said = complaint(folder.path(), "init /dev/null/x", 3);
    assert_one_sentence(&said, &["/dev/null/x"]);
}

/// A file that cannot be written is reported before the runs whose result it would be.
#[test]
fn a_file_that_cannot_be() {
    let remy = SMALL.replace("cc = \"bbr\"", "cc = \"remycc\"");
    let folder = folder_with("a.toml", &remy);
    let at = folder.path();
    std::fs::write(at.join("a.table"), "mine").unwrap();
    for out in ["missing/x", "a.toml/x"] {
        for line in ["train a.toml --rounds 1 --seeds 1 --force", "curve --force"] {
            let said = complaint(at, &format!("{line} --out {out}"), 3);
            assert_one_sentence(&said, &["cannot ", out, "--out"]);
        }
    }
    let said = complaint(at, "train a.toml --out a.table", 2);
    assert_one_sentence(&said, &["a.table exists", "--force"]);
    assert_eq!(std::fs::read_to_string(at.join("a.table")).unwrap(), "mine");
}

#[test]
fn a_full_standard_output() {
    let folder = folder_with("a.toml", SMALL);
    for line in ["list", "--help", "run a.toml"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = knee(folder.path()).args(line.split(' ')).stdout(full).output().unwrap();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(3), "{line}: {err}");
        assert_one_sentence(&err, &["standard output", "No space left"]);
    }
}

/// A reader that closes the pipe early.
#[test]
fn a_closed_standard_output_is_no_failure() {
    let folder = folder_with("a.toml", SMALL);
    let mut child = knee(folder.path())
        .args(["list", "keys"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), texts(&output).1), (Some(0), String::new()));
}

/// Limits the size of files, in units of 512 bytes, as a full disk would.
fn with_files_of(blocks: u32, folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let script = format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec '{}' {arguments}",
        env!("CARGO_BIN_EXE_knee")
    );
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(folder)
        .output()
        .expect("there is a shell");
    (output.status.code(), texts(&output).1)
}

#[test]
fn files_that_cannot_be_written_to_their_end() {
    let folder = folder_with("a.toml", SMALL);
    for blocks in [0, 4, 20, 100] {
        let out = format!("out-{blocks}");
        let (code, said) = with_files_of(blocks, folder.path(), &format!("run a.toml --out {out}"));
        assert_eq!(code, Some(3), "{blocks}: {said}");
        assert_one_sentence(&said, &["cannot write", &out]);
        // The result is marked as incomplete, or is complete except for the page, which can be
        // rewritten.
        let at = folder.path().join(&out);
        let whole = at.join("manifest.json").exists();
        let said = complaint(folder.path(), &format!("report {out}"), if whole { 0 } else { 2 });
        assert_eq!(said.is_empty(), whole, "{said}");
    }
}

#[test]
fn a_packet_log_that_cannot_be_written_to_its_end() {
    let folder = folder_with("a.toml", SMALL);
    let (code, said) = with_files_of(50, folder.path(), "run a.toml --packet-log --out out");
    assert_eq!(code, Some(3), "{said}");
    assert_one_sentence(&said, &["cannot write", "packets.csv", "free some space"]);
}

#[cfg(not(feature = "quic"))]
#[test]
fn grounds_that_this_build_lacks() {
    let folder = folder_with("a.toml", SMALL);
    for ground in ["quic", "sim,quic"] {
        let said = complaint(folder.path(), &format!("run a.toml --on {ground}"), 3);
        assert_one_sentence(&said, &["no ground quic", "--features quic", "--on sim"]);
    }
    assert!(!folder.path().join("knee-out").exists());
}

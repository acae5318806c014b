//! `knee observe` from the outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{complaint, expect};
use knee_trials::{Skipped, trials, turn};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// What is wrong is said before anything is written.
fn wrong_arguments() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    for (line, part) in [
        ("observe --sample 2", "1/100 for one of a hundred"),
        ("observe --sample 1/0", "1/100 for one of a hundred"),
        ("observe --group 192.0.2.0/24", "office=192.0.2.0/24"),
        ("observe --group a=192.0.2.1/24", "192.0.2.0/24 has not"),
        ("observe --group a=::/0 --group b=::/0", "in two groups, a and b"),
        ("observe --duration 5", "bare number"),
        ("observe --limit 5", "bare number"),
    ] {
        let said = complaint(folder.path(), line, 2);
        assert!(said.contains(part), "{line}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    Ok(())
}

/// A transfer over loopback is in the table, and the files are whole.
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn a_transfer_is_seen() -> Result<(), Skipped> {
    let _turn = turn()?;
    let folder = tempfile::tempdir().unwrap();
    let transfer = thread::spawn(|| {
        // Time to begin to listen.
        thread::sleep(Duration::from_secs(1));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let sender = thread::spawn(move || {
            std::io::Write::write_all(&mut server, &vec![1; 5_000_000]).unwrap();
        });
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        sender.join().unwrap();
    });
    let line = "observe --duration 3s --group here=127.0.0.0/8 --out live --format json";
    let told: Value = serde_json::from_str(&expect(folder.path(), line, 0)).unwrap();
    transfer.join().unwrap();
    assert_eq!((&told["schema"], &told["verdict"]), (&"knee-observed/1".into(), &"valid".into()));
    let cells = told["cells"].as_array().unwrap();
    let ours = |cell: &&Value| cell["class"] == "3 to 30 MB" && cell["group"] == "here";
    let acked: u64 =
        cells.iter().filter(ours).filter_map(|cell| cell["acked_bytes"].as_u64()).sum();
    assert!(acked >= 5_000_000, "{told}");
    let files: Vec<String> = fs::read_dir(folder.path().join("live"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.iter().all(|file| file.ends_with(".parquet")), "{files:?}");
    // A second one adds files, and the table is for people.
    let said = expect(folder.path(), "observe --duration 1s --out live", 0);
    assert!(said.contains("lost     0 reports"), "{said}");
    assert_eq!(fs::read_dir(folder.path().join("live")).unwrap().count(), 4);
    Ok(())
}

fn main() -> ExitCode {
    knee_trials::run(trials![wrong_arguments, a_transfer_is_seen])
}

//! `knee steer run` on several hosts at the same times, and `knee steer judge` over what they saw.

#![expect(clippy::disallowed_methods, reason = "processes run in real time")]

use crate::common::{complaint, expect};
use knee_host::{Namespace, Routing};
use knee_policy::PolicyError;
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use serde_json::{Deserializer, Value};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PORT: u16 = 5443;
const BLOCK_S: u64 = 3;
/// Two pairs and a triple.
const BLOCKS: u64 = 7;
const RUN: &str = "--block 3s --burn-in 1s --calibration 2 --triples 1 --allow short-block \
    --allow short-burn-in --allow few-triples --journal own/journal --assignment assignment.json";

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Waits until a time since 1970.
fn until(time: Duration) {
    sleep(time.saturating_sub(since_1970()));
}

/// UTC, as a policy has it.
fn written(unix: u64) -> String {
    let output = Command::new("date")
        .args(["--utc", "--date", &format!("@{unix}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// A host with short connections over its loopback, which runs an experiment from `start` on.
fn host(folder: &Path, start: Duration) {
    let done = Namespace::create().unwrap().within(|| -> Result<(), PolicyError> {
        Routing::open()?.bring_up_loopback()?;
        let server = TcpListener::bind(("127.0.0.1", PORT)).unwrap();
        let stop = AtomicBool::new(false);
        let namespace = fs::File::open("/proc/thread-self/ns/net").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                nix::sched::setns(&namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let mut near = TcpStream::connect(("127.0.0.1", PORT)).unwrap();
                    let (mut far, _) = server.accept().unwrap();
                    far.write_all(&[0; 9000]).unwrap();
                    drop(far);
                    near.read_to_end(&mut Vec::new()).unwrap();
                    sleep(Duration::from_millis(2));
                }
            });
            until(start);
            let ended = Command::new(env!("CARGO_BIN_EXE_knee"))
                .args("steer run ../policy.toml --blocks blocks.jsonl".split_whitespace())
                .args(RUN.split_whitespace())
                .current_dir(folder)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(ended.status.code(), Some(0), "{ended:?}");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(said.contains("of this site begins in"), "{said}");
        });
        Ok(())
    });
    done.unwrap();
}

/// Block and arms that a host has published.
fn published(folder: &Path) -> Option<(u64, Value)> {
    let text = fs::read_to_string(folder.join("assignment.json")).ok()?;
    let value = Deserializer::from_str(&text).into_iter::<Value>().next()?.ok()?;
    Some((value["block"].as_u64()?, value["groups"].clone()))
}

/// In the midst of each block both hosts are in it, with the same arms and halves; a third one joins
/// with the next pair or triple. Their files are one experiment.
fn programs_of_hosts_keep_step() -> Result<(), Skipped> {
    if !cfg!(feature = "bpf") {
        return Err(Skipped("this build of Knee has no BPF programs".to_string()));
    }
    let _turn = turn(Pauses::Any)?;
    if let Some(lack) = knee_policy::programs_lack() {
        return Err(Skipped::lack(lack));
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let begins = since_1970().as_secs() + 10;
    let policy = format!(
        "name = \"edge\"\nstage = \"site\"\nbegins = {}\n[[group]]\nname = \"all\"\n\
         prefixes = [\"127.0.0.0/24\"]\nports = [{PORT}]\ncontroller = \"reno\"\n\
         control = \"cubic\"\n",
        written(begins)
    );
    fs::write(folder.join("policy.toml"), policy).unwrap();
    let hosts = ["a", "b", "late"].map(|name| folder.join(name));
    hosts.iter().for_each(|host| fs::create_dir(host).unwrap());
    let begin = Duration::from_secs(begins);
    std::thread::scope(|scope| {
        for (at, folder) in hosts.iter().enumerate() {
            // The third one would be in the second block.
            let late = Duration::from_secs(if at == 2 { BLOCK_S + 1 } else { 0 });
            let start = if at == 2 { begin + late } else { Duration::ZERO };
            scope.spawn(move || host(folder, start));
        }
        let mut alike = 0;
        for number in 0..BLOCKS {
            until(begin + Duration::from_millis(1000 * BLOCK_S * number + 2000));
            let Some([a, b]) = published(&hosts[0]).zip(published(&hosts[1])).map(|(a, b)| [a, b])
            else {
                continue;
            };
            // A busy host may come late to a block, but not early.
            assert!(a.0 <= number && b.0 <= number, "{a:?} {b:?} in {number}");
            if a.0 == b.0 {
                assert_eq!(a.1, b.1, "block {number}");
                alike += 1;
            }
        }
        assert!(alike >= BLOCKS / 2, "{alike}");
    });
    let numbers = |host: &Path| -> Vec<u64> {
        let text = fs::read_to_string(host.join("blocks.jsonl")).unwrap();
        let block = |line: &str| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64();
        text.lines().filter_map(block).collect()
    };
    assert_eq!(numbers(&hosts[0]), (0..BLOCKS).collect::<Vec<_>>());
    assert_eq!(numbers(&hosts[1]), (0..BLOCKS).collect::<Vec<_>>());
    let late = numbers(&hosts[2]);
    assert!([2, 4].contains(&late[0]) && late.last() == Some(&(BLOCKS - 1)), "{late:?}");
    let files = "a/blocks.jsonl b/blocks.jsonl late/blocks.jsonl";
    let told = expect(folder, &format!("steer judge {files}"), 0);
    assert!(told.contains("edge, site: 1 of 1 triples") && told.contains("late/blocks"), "{told}");
    let run = format!("steer run policy.toml --blocks again.jsonl {RUN}");
    assert!(complaint(folder, &run, 2).contains("last triple of this site has begun"));
    Ok(())
}

/// What is no file of blocks, or of another experiment, is named with what to do.
fn files_that_do_not_belong() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("other"), "something\n").unwrap();
    for (files, part) in [
        ("other", "other is not a file of blocks"),
        ("missing", "cannot read missing"),
        ("other other", "named twice"),
    ] {
        let said = complaint(folder, &format!("steer judge {files}"), 2);
        assert!(said.contains(part), "{said}");
    }
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        files_that_do_not_belong;
        nightly:
        programs_of_hosts_keep_step
    ]
}

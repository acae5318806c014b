//! The stages of `knee steer auto` on a host: as a process, between two network namespaces.

#![expect(clippy::disallowed_methods, reason = "processes are waited for and killed")]

use crate::common::before;
use crate::experiment::{World, is_reverted, knee, marked, until, world};
use knee_policy::Journal;
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const GROUP: [(&str, &str); 1] = [("all", "198.51.100.0/24")];
const LIMITS: &str = "--allow short-block --allow short-burn-in --allow few-triples";

impl World<'_> {
    /// Serves 60 kB to the next client, which under Reno waits a while before it reads: CUBIC is
    /// faster. Returns the controller.
    fn serve(&mut self) -> String {
        const BYTES: usize = 60_000;
        let (mut near, _far, name) = self.connected(BYTES);
        sleep(Duration::from_millis(if name == "reno" { 12 } else { 1 }));
        near.read_exact(&mut [0; BYTES]).unwrap();
        drop(near);
        sleep(Duration::from_millis(1));
        name
    }
}

/// Results of stages, by file.
fn decided(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder.join("out")).unwrap().map(|file| file.unwrap().path());
    let results = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    results.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// From a rehearsal to the policy: what is measured to be better gets the controller, and keeps it
/// until the end, when everything is as it was.
fn what_is_better_gets_the_controller() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        before(world.folder, &GROUP, [1000, 200, 2, 12], &["rehearse"]);
        let line = format!(
            "steer auto rows --out out --journal own/journal --yes --duration 4s --block 1s \
             --burn-in 200ms --calibration 2 --triples 12 {LIMITS}"
        );
        let mut run = knee(world.folder, &line).spawn().unwrap();
        let mut under_policy = BTreeMap::new();
        while run.try_wait().unwrap().is_none() {
            let is_applied = world.folder.join("out/policy.toml").exists();
            let name = world.serve();
            if is_applied {
                *under_policy.entry(name).or_insert(0) += 1;
            }
        }
        let ended = run.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout).into_owned();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{said}{told}");
        assert!(told.contains("all gets cubic in place of reno."), "{said}{told}");
        // The hold-out, and what began before or after, has another one.
        let cubic = under_policy.get("cubic").copied().unwrap_or(0);
        assert!(cubic > under_policy.values().sum::<u32>() / 2, "{under_policy:?} {said}");
        let page = fs::read_to_string(world.folder.join("out/report.html")).unwrap();
        for part in ["gets cubic", "The evidence in full", "better", "controller = "] {
            assert!(page.contains(part), "{part}");
        }
        assert!(is_reverted(world.folder), "{said}");
    });
    Ok(())
}

/// If it is killed in the canary or after it, its guard reverts everything, and the same command goes
/// on: what was decided is not decided again.
fn kills_revert_everything_and_decide_nothing_twice() -> Result<(), Skipped> {
    kills(6)
}

fn forty_kills() -> Result<(), Skipped> {
    kills(40)
}

fn kills(count: u64) -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        before(world.folder, &GROUP, [400, 100, 2, 2], &["rehearse", "observe"]);
        let line = format!(
            "steer auto rows --out out --journal own/journal --yes --block 400ms --burn-in 100ms \
             --calibration 2 --triples 2 {LIMITS}"
        );
        let journal = world.folder.join("own/journal");
        let is_applied = || {
            let text = fs::read_to_string(&journal).unwrap_or_default();
            text.lines().count() > 1
        };
        let mut before = decided(world.folder);
        for after in 0..count {
            let mut run = knee(world.folder, &line).spawn().unwrap();
            until("it is applied", || is_applied() || run.try_wait().unwrap().is_some());
            sleep(Duration::from_millis(37 * after % 1000));
            run.kill().unwrap();
            run.wait().unwrap();
            until("nothing is left", || is_reverted(world.folder));
            let now = decided(world.folder);
            assert!(before.iter().all(|(file, text)| now.get(file) == Some(text)));
            before = now;
        }
        let ended = knee(world.folder, &line).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let now = decided(world.folder);
        assert!(before.iter().all(|(file, text)| now.get(file) == Some(text)));
        assert!(now.contains_key("canary.json"));
        let again = knee(world.folder, &line).output().unwrap();
        assert_eq!((again.status.code(), decided(world.folder)), (Some(0), now));
        assert!(is_reverted(world.folder) && marked() == 0);
    });
    Ok(())
}

/// Of two at once the second is refused and decides nothing: on the folder of the first; with a
/// folder of its own and the journal of the first; and with a journal of its own, on the same host.
/// Then it can begin.
fn two_at_once_decide_nothing_twice() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        let second = world.folder.join("second");
        fs::create_dir(&second).unwrap();
        for folder in [world.folder, &second] {
            before(folder, &GROUP, [400, 100, 2, 16], &["rehearse", "observe"]);
        }
        let line = format!(
            "steer auto rows --out out --journal own/journal --yes --block 400ms --burn-in 100ms \
             --calibration 2 --triples 16 {LIMITS}"
        );
        let journal = world.folder.join("own/journal");
        let is_applied =
            |journal: &Path| fs::read_to_string(journal).unwrap_or_default().lines().count() > 1;
        let start = || (decided(world.folder), decided(&second));
        let before = start();
        let mut first = knee(world.folder, &line).spawn().unwrap();
        until("it is applied", || is_applied(&journal));
        let controllers: Vec<String> = (0..6).map(|_| world.serve()).collect();
        let process = first.id().to_string();
        let beside = line.replace("own/journal", "../own/journal");
        for (folder, line, part) in [
            (world.folder, &line, format!("process {process} works on out")),
            (&second, &beside, format!("process {process} already applies a policy")),
            (&second, &line, "knee steer rollback".to_string()),
        ] {
            let refused = knee(folder, line).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(3), "{said}");
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(&part), "{part}: {said}");
            assert!(is_applied(&journal), "{said}");
        }
        assert!(first.try_wait().unwrap().is_none(), "{controllers:?}");
        assert_eq!(start(), before);
        interrupt(&mut first);
        until("nothing is left", || is_reverted(world.folder));
        let journal = second.join("own/journal");
        let mut then = knee(&second, &line).spawn().unwrap();
        until("the second is applied", || is_applied(&journal));
        interrupt(&mut then);
        until("nothing is left", || is_reverted(&second));
        assert_eq!(start(), before);
    });
    Ok(())
}

/// Ends a process as Ctrl-C does.
fn interrupt(process: &mut Child) {
    let id = Pid::from_raw(i32::try_from(process.id()).unwrap());
    kill(id, Signal::SIGINT).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
}

/// Steps of the host's clock, by days ahead and by months back, end nothing, void nothing and have
/// nothing decided twice: time is counted from the start, and what is on disk stays.
fn a_clock_that_steps_decides_nothing_twice() -> Result<(), Skipped> {
    let libraries = fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let library = libraries.map(|path| path.join("faketime/libfaketimeMT.so.1"));
    let Some(library) = library.into_iter().find(|path| path.exists()) else {
        return Err(Skipped::lack("libfaketime (Debian's package faketime)"));
    };
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        before(world.folder, &GROUP, [400, 100, 2, 2], &["rehearse", "observe"]);
        let line = format!(
            "steer auto rows --out out --journal own/journal --yes --block 400ms --burn-in 100ms \
             --calibration 2 --triples 2 {LIMITS}"
        );
        let clock = world.folder.join("clock");
        let set = |offset: &str| {
            // In one step: it is read at any time.
            let next = clock.with_extension("next");
            fs::write(&next, offset).unwrap();
            fs::rename(next, &clock).unwrap();
        };
        let stepped = |line: &str| {
            let mut command = knee(world.folder, line);
            command.env("LD_PRELOAD", &library).env("FAKETIME_TIMESTAMP_FILE", &clock);
            for switch in ["FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"] {
                command.env(switch, "1");
            }
            command
        };
        let journal = world.folder.join("own/journal");
        set("+900d");
        let mut run = stepped(&line).spawn().unwrap();
        until("it is applied", || {
            fs::read_to_string(&journal).unwrap_or_default().lines().count() > 1
        });
        let begun = Journal::read(&journal).unwrap();
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(begun.begun().unwrap().2 > real + 800 * 86_400, "the clock was not set: {begun:?}");
        let mut offsets = ["-300d", "+2000d", "-1d", "+1d", "-9000d"].iter().cycle();
        while run.try_wait().unwrap().is_none() {
            set(offsets.next().unwrap());
            sleep(Duration::from_millis(300));
        }
        let ended = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{said}");
        let blocks = fs::read_to_string(world.folder.join("out/canary.jsonl")).unwrap();
        let blocks: Vec<Value> = blocks
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line.get("number").is_some())
            .collect();
        let numbers: Vec<u64> =
            blocks.iter().map(|block| block["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<u64>>(), "each block once");
        let now = decided(world.folder);
        assert!(now.contains_key("canary.json"), "{said}");
        set("-9999d");
        let again = stepped(&line).output().unwrap();
        assert_eq!((again.status.code(), decided(world.folder)), (Some(0), now));
        assert!(is_reverted(world.folder) && marked() == 0);
    });
    Ok(())
}

/// On a disk without room nothing is decided, changed or lost, and the same command goes on once there
/// is room.
fn a_full_disk_decides_nothing() -> Result<(), Skipped> {
    const SCRIPT: &str = "mkdir full result && mount -t tmpfs -o size=128k,mode=700 none full &&
        cp -p out/* full && { dd if=/dev/zero of=full/filler bs=4k 2>dd || true; } &&
        { $KNEE; echo code $?; ls full; rm full/filler; $KNEE; echo code $?; } && cp full/* result";
    let _turn = turn(Pauses::Any)?;
    let folder = tempfile::tempdir().unwrap();
    let stages = ["rehearse", "observe", "canary", "host"];
    before(folder.path(), &GROUP, [20 * 60 * 1000, 60 * 1000, 8, 48], &stages);
    let decided_before = decided(folder.path());
    let program = env!("CARGO_BIN_EXE_knee");
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", SCRIPT]).current_dir(folder.path());
    shell.env("KNEE", format!("{program} steer auto rows --out full --until policy"));
    let done = shell.output().unwrap();
    let (told, said) = (String::from_utf8(done.stdout), String::from_utf8(done.stderr));
    let (told, said) = (told.unwrap(), said.unwrap());
    let (first, second) = told.split_once("code 3").unwrap_or_else(|| panic!("{told}{said}"));
    assert!(first.is_empty() && !second.split_once("code 0").unwrap().0.contains("toml"), "{told}");
    assert!(said.contains("cannot write full/auto.lock: No space left on device"), "{said}");
    assert!(said.contains("free some space"), "{said}");
    fs::rename(folder.path().join("out"), folder.path().join("before")).unwrap();
    fs::rename(folder.path().join("result"), folder.path().join("out")).unwrap();
    assert_eq!(decided(folder.path()), decided_before);
    let policy = fs::read_to_string(folder.path().join("out/policy.toml")).unwrap();
    assert!(policy.contains("198.51.100.0/24"), "{policy}");
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        kills_revert_everything_and_decide_nothing_twice,
        two_at_once_decide_nothing_twice,
        a_full_disk_decides_nothing;
        nightly:
        a_clock_that_steps_decides_nothing_twice,
        what_is_better_gets_the_controller,
        forty_kills
    ]
}

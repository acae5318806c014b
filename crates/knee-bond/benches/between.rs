//! Runs two programs with links and `knee bond` between them: one on the server's host, one on the
//! client's. Part of `benches/browser`; needs root.
//!
//! `between page` prints the objects of the simulator's default page. `between FOLDER` reads
//! `plan.json` and `links.toml` in that folder, and writes `between.json` there: the verdict of the
//! emulator, and the status of the server when the client's program ended.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]
#![allow(clippy::print_stdout, reason = "the page is what it is for")]
#![allow(clippy::print_stderr, reason = "so is what the host lacks")]
#![allow(dead_code, reason = "the tests use more of the lab")]

#[path = "../tests/realtime/lab/mod.rs"]
mod lab;

use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// Time for the server's program to start.
const START: Duration = Duration::from_secs(30);

/// What to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Number of links; `links.toml` has `link.aN` from client to server and `link.bN` back.
    links: usize,
    /// Number of links whose interfaces have an address at the start.
    present: usize,
    /// Congestion controller of both ends.
    controller: String,
    /// Scheduler of both ends.
    scheduler: String,
    /// Program on the server's host, which creates the file `ready` in the folder.
    serve: Vec<String>,
    /// Program on the client's host. The run ends with it.
    drive: Vec<String>,
}

/// A program that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn print_page() {
    let objects = knee_workload::default_page();
    println!("name,bytes,after");
    for object in &objects {
        let after: Vec<&str> = object.after.iter().map(|&n| objects[n].name.as_str()).collect();
        println!("{},{},{}", object.name, object.bytes, after.join(" "));
    }
}

/// Waits until the server's program is ready, or returns whether it is.
fn wait_for(ready: &Path, server: &mut Running) -> bool {
    let began = Instant::now();
    while !ready.exists() {
        let ended = server.0.try_wait().unwrap().is_some();
        if ended || began.elapsed() > START {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

fn play(lab: &lab::Lab, plan: &Plan, folder: &Path) -> serde_json::Value {
    for link in plan.present..plan.links {
        // The emulator needs the device, so it has no address instead of being down.
        let (address, device) = (format!("10.64.{link}.1/24"), format!("knee{link}"));
        lab.ip(&["address", "del", &address, "dev", &device]);
    }
    let mut server = Running(lab.start_there(&plan.serve));
    assert!(wait_for(&folder.join("ready"), &mut server), "the server's program did not start");
    let tuning = format!(
        "tuning = {{ controller = \"{}\", scheduler = \"{}\" }}\n",
        plan.controller, plan.scheduler
    );
    let interfaces: Vec<String> =
        (0..plan.links).map(|link| format!("{{ interface = \"knee{link}\" }}")).collect();
    let theirs = format!("{tuning}[egress]\nallow = [\"10.99.0.0/16\"]\n");
    let ours = format!("{tuning}link = [{}]\n", interfaces.join(", "));
    let (bond, client) = lab.pair(&theirs, &ours);
    client.wait_for_links(plan.present);
    drop(lab.local(1080));
    let mut driver = Running(lab.start_here(&plan.drive));
    let ended = driver.0.wait().unwrap();
    json!({
        "succeeded": ended.success(),
        "server": bond.status(),
        "said": client.said(),
    })
}

fn run(folder: &Path) -> ExitCode {
    let plan = fs::read_to_string(folder.join("plan.json")).unwrap();
    let plan: Plan = serde_json::from_str(&plan).unwrap();
    let links = fs::read_to_string(folder.join("links.toml")).unwrap();
    let mut outcome = json!(null);
    let done = lab::measured(&links, plan.links, |lab| outcome = play(lab, &plan, folder));
    let health = match done {
        Ok(health) => health,
        Err(knee_trials::Skipped(why)) => {
            eprintln!("this host cannot: {why}");
            return ExitCode::from(3);
        }
    };
    let (verdict, reason) = health.verdict();
    outcome["emulator"] = json!({
        "verdict": verdict.to_string(),
        "reason": reason,
        "lateness_p99_ms": health.emulator.lateness.at(0.99).as_millis_f64(),
        "stalls": health.emulator.stalls,
        "stolen": health.stolen,
    });
    fs::write(folder.join("between.json"), outcome.to_string()).unwrap();
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let mut arguments = env::args_os().skip(1).filter(|word| word != "--bench");
    match arguments.next() {
        Some(word) if word == "page" => {
            print_page();
            ExitCode::SUCCESS
        }
        Some(folder) => run(&PathBuf::from(folder)),
        None => {
            println!("between: measures nothing by itself; python3 benches/browser gives it plans");
            ExitCode::SUCCESS
        }
    }
}

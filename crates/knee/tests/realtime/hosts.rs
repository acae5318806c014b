//! `knee serve` and `knee run --on hosts` from the command line, over loopback.

use crate::common::{complaint, expect, folder_with, json, knee};
use knee_trials::{Pauses, Skipped, Trial, alone, trials};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A file over a link that is not there.
const FILE: &str = r#"
name = "A file"
duration = "1 s"
[link.wire]
rate = "1 Gbit/s"
delay = "1 ms"
[path.main]
forward = ["wire"]
reverse_delay = "1 ms"
[[flow]]
name = "file"
cc = "cubic"
workload = { file = "3 MB" }
[[claim]]
id = "F1"
says = "it ends"
measure = "completion_time"
of = "file"
at_most = "900 ms"
"#;

/// Transfers of 20 kB in one process, under each of two controllers, in blocks of a second.
const MIX: &str = r#"
name = "Small transfers"
duration = "1 s"
warmup = "50 ms"
[link.wire]
rate = "1 Gbit/s"
delay = "1 ms"
[path.main]
forward = ["wire"]
reverse_delay = "1 ms"
[[flow]]
name = "with-reno"
cc = "reno"
workload = { mix = { arrival_interval = "10 ms", sizes = "20 kB", process = "clients" } }
[[flow]]
name = "with-cubic"
cc = "cubic"
workload = { mix = { arrival_interval = "10 ms", sizes = "20 kB", process = "clients" } }
"#;

/// A server; it ends with the test, also with one that fails.
struct Server(Child);

impl Server {
    /// Ends it as Ctrl-C does, and returns what it has said.
    fn ended(mut self) -> String {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success());
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that knows `lab.key`, and waits until it listens.
fn serve(folder: &Path) -> Server {
    let server = expect(folder, "bond keys serve.key", 0);
    let client = expect(folder, "bond keys lab.key", 0);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "listen = \"127.0.0.1:{port}\"\nkey = \"serve.key\"\n\
         client = [{{ name = \"lab\", key = \"{}\" }}]\n",
        client.trim()
    );
    fs::write(folder.join("serve.toml"), config).unwrap();
    let far = format!(
        "host = \"127.0.0.1:{port}\"\nhost_key = \"{}\"\nkey = \"lab.key\"\n",
        server.trim()
    );
    fs::write(folder.join("far.toml"), far).unwrap();
    let mut command = knee(folder);
    let server = command.args(["serve", "serve.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    let (mut server, mut line) = (Server(server), String::new());
    let said = server.0.stderr.as_mut().unwrap();
    // Nothing more is said before a client comes.
    BufReader::with_capacity(1, said).read_line(&mut line).unwrap();
    assert!(line.contains(&format!("Listening at TCP 127.0.0.1:{port}")), "{line}");
    server
}

fn a_run_arrives_and_ctrl_c_ends_the_server() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(200));
    let folder = folder_with("file.toml", FILE);
    let server = serve(folder.path());
    let line = "run file.toml --on sim,hosts --host far.toml --no-alternatives --out out";
    let out = expect(folder.path(), line, 0);
    assert!(out.contains("knee run file.toml --on sim,hosts --host far.toml --seed"), "{out}");
    assert!(out.contains("The links of the path are not known."), "{out}");
    let summary = json(&folder.path().join("out/hosts/summary.json"));
    assert_eq!((&summary["ground"], &summary["verdict"]), (&"hosts".into(), &"valid".into()));
    assert_eq!(summary["flows"][0]["delivered_bytes"], 3_000_000);
    assert!(summary["flows"][0]["completion_us"].is_number(), "{summary}");
    assert_eq!(summary["links"].as_array().map(Vec::len), Some(0));
    assert_eq!(summary["claims"][0]["outcome"], "holds");
    // Nothing of the path is known but what was measured: null, not zero.
    let unknown = ["drops", "capacity_bps", "capacity_share"].map(|key| &summary["all"][key]);
    assert!(unknown.iter().all(|value| value.is_null()), "{}", summary["all"]);
    let flow = &summary["flows"][0];
    assert!(flow["base_rtt_us"].as_f64().is_some_and(|rtt| rtt > 0.0 && rtt < 2000.0), "{flow}");
    let said = complaint(folder.path(), "drops out/hosts", 2);
    assert!(said.contains("the links of the path are not known"), "{said}");
    expect(folder.path(), "compare out/sim out/hosts", 0);
    let manifest = json(&folder.path().join("out/hosts/manifest.json"));
    assert!(manifest["health"].is_null(), "{manifest}");
    assert!(folder.path().join("out/hosts/report.html").exists());
    expect(folder.path(), "report out/hosts", 0);
    let said = server.ended();
    assert!(said.contains("lab has ended: 1 connections, 3 MB."), "{said}");
    Ok(())
}

/// Two controllers over the path that is there: pairs, a triple in the order that was drawn, and the
/// same arrivals under each. Every block arrives whole.
fn controllers_alternate_in_blocks() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(200));
    let folder = folder_with("mix.toml", MIX);
    let server = serve(folder.path());
    let line = "steer rehearse mix.toml --on hosts --host far.toml --triples 1 --calibration 2 \
                --truth 1 --format json";
    let out: Value = serde_json::from_str(&expect(folder.path(), line, 0)).unwrap();
    let class = &out["tables"]["classes"][0];
    assert_eq!(class["objects"], "under 100 kB", "{out}");
    assert!(class["b_minus_a"].is_number() && class["truth"].is_number(), "{out}");
    let said = server.ended();
    // Two pairs, three blocks, and one pair with the same arrivals.
    assert_eq!(said.matches("lab has ended").count(), 4 + 3 + 2, "{said}");
    Ok(())
}

pub fn all() -> Vec<Trial> {
    trials![a_run_arrives_and_ctrl_c_ends_the_server, controllers_alternate_in_blocks]
}

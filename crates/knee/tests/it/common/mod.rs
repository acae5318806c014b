//! Code shared by the tests of the program.

use std::path::Path;
use std::process::{Command, Output};

/// Two flows over 10 Mbit/s for three seconds.
pub const SMALL: &str = r#"
name = "Small"
duration = "3 s"
seed = 5

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"
loss = "0.1 %"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
name = "bbr"
cc = "bbr"

[[flow]]
name = "cubic"
cc = "cubic"
"#;

/// A claim that holds on any link of up to 20 Mbit/s.
pub const TRUE_CLAIM: &str = r#"
[[claim]]
id = "T1"
says = "it is not faster than the link"
measure = "goodput"
at_most = "20 Mbit/s"
"#;

/// A claim that fails on a 10 Mbit/s link.
pub const FALSE_CLAIM: &str = r#"
[[claim]]
id = "F1"
says = "it is faster than the link"
measure = "goodput"
at_least = "11 Mbit/s"
"#;

/// The program with `folder` as working directory.
pub fn knee(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.current_dir(folder).env_remove("NO_COLOR");
    command
}

/// Runs it with arguments separated by spaces.
pub fn run(folder: &Path, line: &str) -> Output {
    knee(folder).args(line.split_whitespace()).output().expect("the program starts")
}

/// Runs it, checks the exit code, and returns standard output.
pub fn expect(folder: &Path, line: &str, code: i32) -> String {
    let output = run(folder, line);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "knee {line}\n{out}{err}");
    out
}

/// Runs it, checks the exit code, and returns standard error.
pub fn complaint(folder: &Path, line: &str, code: i32) -> String {
    let output = run(folder, line);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "knee {line}\n{out}{err}");
    err
}

/// Standard output and standard error.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// A folder that contains a scenario.
pub fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    std::fs::write(folder.path().join(name), text).expect("it can be written");
    folder
}

/// Reads a JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("it is JSON")
}

/// Decides the first stages of `knee steer auto` in the folder `out`: CUBIC in place of Reno goes
/// on in groups with these names and prefixes. Blocks last so many milliseconds, and so does the
/// burn-in; then the numbers of pairs and of triples.
pub fn before(folder: &Path, groups: &[(&str, &str)], schedule: [u64; 4], stages: &[&str]) {
    let out = folder.join("out");
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("written");
    std::fs::create_dir(&out).expect("there is none");
    write("auto.lock", String::new());
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(out.join("auto.lock"), private).expect("it is ours");
    let group = |(name, prefix): &(&str, &str)| {
        serde_json::json!({
            "name": name, "prefixes": [prefix], "port": 5001, "connections": 1000,
            "interval_s": 0.1, "in_use": ["reno", "reno"], "candidate": ["cubic", "cubic"],
            "expected": [], "path": null, "sizes": [1000], "needed": 1000,
            "goes_on": true, "why": "a gain is expected"
        })
    };
    let [block, burn_in, calibration, triples] = schedule;
    let advice = serde_json::json!({
        "schema": "knee-steer-auto/1", "command": "knee steer auto rows --out out", "seed": 1,
        "schedule": {
            "block_ns": block * 1_000_000, "burn_in_ns": burn_in * 1_000_000,
            "calibration": calibration, "triples": triples
        },
        "left_out": 0, "groups": groups.iter().map(group).collect::<Vec<_>>()
    });
    write("advise.json", advice.to_string());
    for stage in stages {
        let decided: Vec<(&str, bool)> = groups.iter().map(|(name, _)| (*name, true)).collect();
        write(&format!("{stage}.json"), stage_result(&decided));
    }
}

/// Result of a stage that measured nothing: which groups go on.
pub fn stage_result(groups: &[(&str, bool)]) -> String {
    let one = |(name, goes_on): &(&str, bool)| {
        serde_json::json!({
            "name": name, "classes": [], "goes_on": goes_on, "why": "it was measured"
        })
    };
    serde_json::json!({
        "schema": "knee-steer-auto/1", "ended_unix": 1_800_000_000_u64, "done": "done",
        "groups": groups.iter().map(one).collect::<Vec<_>>()
    })
    .to_string()
}

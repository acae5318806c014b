//! What the tests of the program share.

#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

use std::path::Path;
use std::process::{Command, Output};

/// Two flows on 10 Mbit/s, for three seconds.
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

/// A claim that no link of up to 20 Mbit/s fails.
pub const TRUE_CLAIM: &str = r#"
[[claim]]
id = "T1"
says = "it is not faster than the link"
measure = "goodput"
at_most = "20 Mbit/s"
"#;

/// A claim that no 10 Mbit/s link fulfils.
pub const FALSE_CLAIM: &str = r#"
[[claim]]
id = "F1"
says = "it is faster than the link"
measure = "goodput"
at_least = "11 Mbit/s"
"#;

/// The program, to be run in `folder`.
pub fn knee(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.current_dir(folder).env_remove("NO_COLOR");
    command
}

/// Runs it with arguments that have no spaces in them.
pub fn run(folder: &Path, line: &str) -> Output {
    knee(folder).args(line.split_whitespace()).output().expect("the program starts")
}

/// Runs it, expects an exit code, gives what it printed.
pub fn expect(folder: &Path, line: &str, code: i32) -> String {
    let output = run(folder, line);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "knee {line}\n{out}{err}");
    out
}

/// Runs it, expects an exit code, gives what it complained about.
pub fn complaint(folder: &Path, line: &str, code: i32) -> String {
    let output = run(folder, line);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "knee {line}\n{out}{err}");
    err
}

/// Both outputs.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// A folder with a scenario in it.
pub fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    std::fs::write(folder.path().join(name), text).expect("it can be written");
    folder
}

/// A JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("it is JSON")
}

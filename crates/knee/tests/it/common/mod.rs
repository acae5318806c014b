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

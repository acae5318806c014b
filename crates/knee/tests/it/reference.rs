//! Each example in docs/scenario.md runs, and its claims have the documented outcomes.

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/scenario.md");

#[test]
fn every_example_of_the_reference_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reference");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let blocks: Vec<(&str, &str)> = PAGE
        .split("\n```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').unwrap())
        .collect();
    for (fence, text) in &blocks {
        if let Some(name) = fence.strip_prefix("text ") {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let examples = blocks.iter().filter(|(fence, _)| *fence == "toml");
    let mut run = 0;
    for (number, (_, text)) in examples.enumerate() {
        let file = format!("{number}.toml");
        fs::write(folder.join(&file), text).unwrap();
        let out = format!("out-{number}");
        // Programs need a real host, and to be there.
        let is_of_programs = text.contains("[flow.program]");
        let words: &[&str] = match is_of_programs {
            true => &["check", &file],
            false => &["run", &file, "--no-alternatives", "--out", &out],
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
        let output = command.args(words).current_dir(&folder).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{told}\n{}\n{text}",
            String::from_utf8_lossy(&output.stdout)
        );
        let is_kept = folder.join(&out).join("summary.json").exists();
        assert!(is_kept || is_of_programs, "{text}");
        run += 1;
    }
    assert!(run > 10, "{run}");
}

//! `knee plot`.

use std::path::Path;
use std::process::{Command, Output};

fn knee(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.current_dir(directory).args(arguments).output().unwrap()
}

fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let begun = knee(directory.path(), &["init", "first.toml"]);
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    let done =
        knee(directory.path(), &["run", "first.toml", "--set", "duration=10 s", "--out", "run"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    directory
}

#[test]
fn a_figure_is_written_and_not_over_another() {
    let directory = run();
    let plot = |more: &[&str]| {
        let all = [&["plot", "run", "--what", "throughput"], more].concat();
        knee(directory.path(), &all)
    };
    let first = plot(&["--width", "500"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(String::from_utf8_lossy(&first.stdout), "picture  throughput.svg\n");
    let svg = std::fs::read_to_string(directory.path().join("throughput.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("width=\"500\""));
    assert!(svg.contains("goodput (Mbit/s)"));
    let second = plot(&[]);
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("throughput.svg exists"));
    assert!(plot(&["--force"]).status.success());
}

/// What is not drawn is not written under the name of another format.
#[test]
fn the_name_of_the_file_says_its_format() {
    let directory = run();
    let plot = |out: &str| {
        let output = knee(directory.path(), &["plot", "run", "--what", "delay", "--out", out]);
        let told = String::from_utf8_lossy(&output.stderr).to_string();
        (output.status.code(), told, std::fs::read(directory.path().join(out)).ok())
    };
    for name in ["a.gif", "a", "pdf"] {
        let (code, told, file) = plot(name);
        assert_eq!((code, file), (Some(2), None), "{told}");
        assert!(told.contains("does not end in .svg, .pdf or .png"), "{told}");
    }
    assert!(plot("a.SVG").2.is_some_and(|file| file.starts_with(b"<svg ")));
    let (code, told, file) = plot("a.pdf");
    if cfg!(feature = "pdf") {
        let file = file.unwrap_or_else(|| panic!("{told}"));
        assert!(code == Some(0) && file.starts_with(b"%PDF-") && file.ends_with(b"%%EOF"));
        // 720 pixels of 1/96 inch are 540 points, and the text is text.
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("/MediaBox [0 0 540 ") && text.contains("/Font"), "{}", text.len());
    } else {
        assert!(code == Some(2) && file.is_none() && told.contains("--features "), "{told}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    let directory = run();
    let told = |arguments: &[&str]| {
        let output = knee(directory.path(), &[&["plot"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).to_string()
    };
    assert!(told(&["run", "--what", "capacity"]).contains("throughput, delay"));
    assert!(told(&["run", "--what", "queue", "--link", "x"]).contains("bottleneck"));
    assert!(told(&[".", "--what", "delay"]).contains("knee"));
    assert!(told(&["run", "--what", "colour"]).contains("rtt-distribution"));
    let marked = told(&["run", "--what", "delay", "--mark", "target"]);
    assert!(marked.contains("lacks a name") && marked.contains("NAME@TIME"), "{marked}");
    assert!(told(&["run", "--what", "delay", "--mark", "end@11 s"]).contains("0 to 10 s"));
}

/// Without `--what` the figures of the folder are named, and only those: each can be drawn.
#[test]
fn without_a_name_the_figures_of_a_folder_are_listed() {
    let directory = run();
    let output = knee(directory.path(), &["plot", "run"]);
    let told = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert_eq!(output.status.code(), Some(2), "{told}");
    let (_, names) = told.split_once("write --what ").unwrap_or_else(|| panic!("{told}"));
    let names: Vec<&str> = names.trim().split(", ").flat_map(|name| name.split(" or ")).collect();
    for absent in ["capacity", "finish", "size-time", "values", "delay-throughput"] {
        assert!(!names.contains(&absent), "{names:?}");
    }
    assert!(names.len() >= 6 && names.contains(&"rtt-distribution"), "{names:?}");
    for name in names {
        let drawn = knee(directory.path(), &["plot", "run", "--what", name]);
        assert!(drawn.status.success(), "{name}: {}", String::from_utf8_lossy(&drawn.stderr));
    }
}

/// The figure of a ranking names every candidate, and exists only for rankings.
#[test]
fn the_plane_of_a_ranking_is_written() {
    let directory = run();
    let of = |arguments: &[&str]| knee(directory.path(), arguments);
    let line = ["rank", "first.toml", "--cc", "bbr,reno", "--set", "duration=10 s", "--out", "all"];
    let ranked = of(&line);
    assert!(ranked.status.success(), "{}", String::from_utf8_lossy(&ranked.stderr));
    let done = of(&["plot", "all", "--what", "delay-throughput", "--width", "500"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let svg = std::fs::read_to_string(directory.path().join("delay-throughput.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("width=\"500\""));
    assert!(svg.contains(">bbr</text>") && svg.contains(">reno</text>"), "{svg}");
    let unnamed = String::from_utf8_lossy(&of(&["plot", "all"]).stderr).to_string();
    assert!(unnamed.contains("write --what delay-throughput\n"), "{unnamed}");
    // No reference to colours of a page.
    assert!(!svg.contains("var(--"));
    for (folder, what, advice) in
        [("run", "delay-throughput", "knee rank"), ("all", "queue", "--what delay-throughput")]
    {
        let refused = of(&["plot", folder, "--what", what, "--out", "none.svg"]);
        let told = String::from_utf8_lossy(&refused.stderr).to_string();
        assert!(refused.status.code() == Some(2) && told.contains(advice), "{told}");
    }
}

/// The drawing of a sweep is that of its page: each cell and each bar of the file is
/// there, mark by mark. It belongs to sweeps alone.
#[test]
fn the_values_of_a_sweep_are_drawn() {
    let directory = run();
    let of = |arguments: &[&str]| knee(directory.path(), arguments);
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let vary = [
        "--vary",
        "link.bottleneck.buffer=1 BDP,2 BDP",
        "--vary",
        "link.bottleneck.rate=5 Mbit/s,10 Mbit/s",
    ];
    for (out, varied) in [("bars", &vary[..2]), ("map", &vary[..])] {
        let line = ["sweep", "first.toml", "--set", "duration=10 s", "--repeat", "2", "--out", out];
        let swept = of(&[&line, varied].concat());
        assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stderr));
        let file = format!("{out}.svg");
        let measure = ["--measure", "goodput_bps", "--out", &file];
        let done = of(&[&["plot", out, "--what", "values"], &measure[..]].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (svg, page) = (read(&file), read(&format!("{out}/report.html")));
        assert!(svg.contains("Mbit/s") && !svg.contains("var(--"), "{svg}");
        let drawn: Vec<&str> = svg
            .lines()
            .filter_map(|line| match line.split_once("</title><rect") {
                Some((_, cell)) => cell.strip_suffix("</g>"),
                None => line.starts_with("<rect class=\"bar").then_some(line),
            })
            .collect();
        assert_eq!(drawn.len(), if out == "map" { 4 } else { 2 }, "{svg}");
        assert!(drawn.iter().all(|mark| page.contains(mark)), "{drawn:?}");
    }
    for (arguments, advice) in [
        (["plot", "run", "--what", "values"].as_slice(), "knee sweep"),
        (&["plot", "map", "--what", "queue"], "--what values"),
        (&["plot", "map", "--what", "values", "--measure", "speed"], "goodput_bps"),
        (&["plot", "map", "--what", "values", "--flow", "other"], "it has"),
        (&["plot", "run", "--what", "delay", "--measure", "goodput_bps"], "--what values"),
    ] {
        let refused = of(&[arguments, &["--out", "none.svg"]].concat());
        let told = String::from_utf8_lossy(&refused.stderr).to_string();
        assert!(refused.status.code() == Some(2) && told.contains(advice), "{told}");
    }
}

/// Without the feature, PNG is refused with advice; with it, the file is a PNG of the requested
/// size (W3C PNG, 5.2 and 11.2.2: signature, then IHDR).
#[test]
fn png_is_written_where_it_was_built_in() {
    let directory = run();
    let arguments = ["plot", "run", "--what", "delay", "--out", "delay.png", "--width", "640"];
    let output = knee(directory.path(), &arguments);
    let file = directory.path().join("delay.png");
    if cfg!(feature = "png") {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(file).unwrap();
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(u32::from_be_bytes(bytes[16..20].try_into().unwrap()), 640);
    } else {
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("write an SVG"));
        assert!(!file.exists());
    }
}

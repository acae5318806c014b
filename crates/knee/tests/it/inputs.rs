//! Inputs that are not regular files, are too large, have odd names or the names of output files: a
//! clear error or a normal run.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, expect, folder_with, json, knee, texts};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("there is mkfifo");
    assert!(made.success());
}

/// Every scenario key that names a file, with `FILE` as the name.
fn readers() -> Vec<String> {
    let rate = "rate = \"10 Mbit/s\"";
    let work = |workload: &str| format!("{SMALL}workload = {workload}\n");
    vec![
        SMALL.replace(rate, "rate = { trace = \"FILE\" }"),
        SMALL.replace("loss = \"0.1 %\"", "loss = { file = \"FILE\" }"),
        work("{ page = { objects = \"FILE\" } }"),
        work("{ mix = { arrival_interval = \"100 ms\", sizes = { log = \"FILE\" } } }"),
    ]
}

/// An endless device would fill the memory, and an idle one would block.
#[test]
fn devices_and_pipes_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    make_pipe(&at.join("pipe"));
    for file in ["/dev/zero", "pipe"] {
        for text in readers() {
            fs::write(at.join("a.toml"), text.replace("FILE", file)).unwrap();
            for command in ["check", "run"] {
                let said = complaint(at, &format!("{command} a.toml"), 2);
                assert!(said.contains("is not a regular file"), "{said}");
            }
        }
        for line in ["check FILE", "run FILE", "sweep FILE --vary flow.bbr.cc=bbr,reno"] {
            let said = complaint(at, &line.replace("FILE", file), 2);
            assert!(said.contains("is not a regular file"), "{said}");
        }
    }
    fs::create_dir(at.join("study")).unwrap();
    let study = "name = \"A\"\nsource = \"B\"\n[[run]]\nname = \"a\"\nfile = \"../pipe\"\n";
    fs::write(at.join("study/study.toml"), study).unwrap();
    for line in ["check study", "reproduce ./study"] {
        let said = complaint(at, line, 2);
        assert!(said.contains("is not a regular file"), "{said}");
    }
}

/// What is not a regular file is refused in place of a run's output, too.
#[test]
fn records_that_are_no_files() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out o", 0);
    let names = [
        "manifest.json",
        "summary.json",
        "scenario.toml",
        "flows.parquet",
        "samples.parquet",
        "links.parquet",
    ];
    for name in names {
        let (path, aside) = (at.join("o").join(name), at.join("aside"));
        fs::rename(&path, &aside).unwrap();
        make_pipe(&path);
        let said = complaint(at, "report o", 2);
        assert!(said.contains(name) && said.contains("is not a regular file"), "{said}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    expect(at, "report o", 0);
}

/// Damaged tables are reported by `knee report`.
#[test]
fn damaged_records_are_no_mistake_of_knee() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out o", 0);
    for name in ["flows.parquet", "samples.parquet", "links.parquet"] {
        let path = at.join("o").join(name);
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        // Size fields in page headers, which decoders trust.
        changed[4..64].iter_mut().for_each(|byte| *byte ^= 0x55);
        for bytes in [&whole[..whole.len() / 2], b"", b"PAR1PAR1", changed.as_slice()] {
            fs::write(&path, bytes).unwrap();
            let said = complaint(at, "report o", 2);
            assert!(said.contains(name) && said.lines().count() == 1, "{said}");
        }
        fs::write(&path, whole).unwrap();
    }
    for name in ["summary.json", "manifest.json"] {
        let path = at.join("o").join(name);
        let whole = fs::read(&path).unwrap();
        for bytes in [&whole[..whole.len() / 2], b"", &[0xff; 100]] {
            fs::write(&path, bytes).unwrap();
            for line in ["report o", "compare o o"] {
                assert!(complaint(at, line, 2).contains(name));
            }
        }
        fs::write(&path, whole).unwrap();
    }
}

/// A file with a false length of zero, and one that is too large.
#[test]
fn no_file_is_read_beyond_its_bound() {
    let folder = folder_with("a.toml", SMALL);
    let large = fs::File::create(folder.path().join("large.toml")).unwrap();
    large.set_len(257 << 20).unwrap();
    let said = complaint(folder.path(), "check large.toml", 2);
    assert!(said.contains("larger than 16 MiB"), "{said}");
    let text = SMALL.replace("loss = \"0.1 %\"", "loss = { file = \"large.toml\" }");
    fs::write(folder.path().join("a.toml"), text).unwrap();
    let said = complaint(folder.path(), "check a.toml", 2);
    assert!(said.contains("larger than 256 MiB"), "{said}");
    // Its metadata says that it has no bytes.
    let said = complaint(folder.path(), "check /proc/self/status", 2);
    assert!(said.contains("invalid TOML"), "{said}");
}

/// Runs `knee check` with the inputs of an attack within 400 MB of address space, which the program
/// itself and its threads need a quarter of.
fn bounded(at: &Path, file: &str) -> String {
    let shell = format!("ulimit -v 400000; exec {} check {file}", env!("CARGO_BIN_EXE_knee"));
    let output = Command::new("sh").args(["-c", &shell]).current_dir(at).output().unwrap();
    let (out, err) = texts(&output);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{out}{err}");
    out + &err
}

/// A compressed log costs its transfers and one line, whatever it unpacks to.
#[test]
fn compressed_logs_are_bounded_in_memory() {
    let text = SMALL.replace("cc = \"cubic\"", "cc = \"cubic\"\nworkload = { mix = { arrival_interval = \"1 s\", sizes = { log = \"a.gz\" } } }");
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    for (unpacked, expected) in [
        (
            "yes '192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 7' | head -c 60m",
            "lines taken",
        ),
        // More than the memory that there is.
        ("head -c 450m /dev/zero", "longer than 4 MiB"),
        ("yes 7 | head -c 30m", "more than 10000000 lines"),
        ("echo 7 | gzip", "a gzip file within a gzip file"),
    ] {
        let made = format!("{unpacked} | gzip -1 > a.gz");
        assert!(Command::new("sh").args(["-c", &made]).current_dir(at).status().unwrap().success());
        let said = bounded(at, "a.toml");
        assert!(said.contains(expected), "{unpacked}: {said}");
    }
}

/// A log or a text in place of a scenario is one error: the work does not depend on the number of
/// its lines.
#[test]
fn a_file_that_is_no_scenario_is_one_error() {
    let line = "198.51.100.7 - - [12/Mar/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 7\n";
    let folder = folder_with("a.log", &line.repeat(100_000));
    fs::write(folder.path().join("a.txt"), "it is a text\n".repeat(100_000)).unwrap();
    for (file, wanted) in [
        ("a.log", "this is an access log (Common Log Format), not a scenario"),
        ("a.txt", "invalid TOML here and in many other places"),
    ] {
        for command in ["check FILE", "run FILE", "sweep FILE --vary flow.bbr.cc=bbr,reno"] {
            let said = complaint(folder.path(), &command.replace("FILE", file), 2);
            assert!(said.contains(wanted) && said.lines().count() < 12, "{said}");
        }
    }
    fs::write(folder.path().join("b.log"), "a = 1\n".repeat(7).as_bytes()).unwrap();
    fs::write(folder.path().join("c.log"), [0x28, 0xb5, 0x2f, 0xfd, 4]).unwrap();
    assert!(complaint(folder.path(), "run c.log", 2).contains("it is a Zstandard file"));
}

/// A folder from somebody else: pipes, devices, links and names that lead out of it are refused by
/// every command that opens it, and the paths in its manifest are not read.
#[test]
fn folders_of_others_are_read_within_their_bounds() {
    let text = SMALL.replace("rate = \"10 Mbit/s\"", "rate = { trace = \"t.down\" }");
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    fs::write(at.join("t.down"), "1\n2\n3\n").unwrap();
    expect(at, "run a.toml --out o", 0);
    // Without --originals no path of the manifest is read; with it the changed one is named.
    fs::write(at.join("t.down"), "1\n2\n4\n").unwrap();
    assert!(!expect(at, "rerun o --out p", 0).contains("t.down"));
    assert!(expect(at, "rerun o --out q --originals", 0).contains("t.down"));

    fs::write(at.join("secret"), "1\n2\n3\n").unwrap();
    let link = |to: &str, name: &Path| std::os::unix::fs::symlink(to, name).unwrap();
    let input = at.join("o/inputs/extra");
    make_pipe(&input);
    assert!(complaint(at, "rerun o --out r", 2).contains("is not a regular file"));
    for target in ["/dev/zero", "../../secret"] {
        fs::remove_file(&input).unwrap();
        link(target, &input);
        assert!(complaint(at, "rerun o --out r", 2).contains("leads out of its folder"));
    }
    fs::remove_file(&input).unwrap();

    let scenario = fs::read_to_string(at.join("o/scenario.toml")).unwrap();
    for name in ["../secret", "/etc/hostname"] {
        let changed = scenario.replace("inputs/t.down", name);
        assert_ne!(changed, scenario);
        fs::write(at.join("o/scenario.toml"), changed).unwrap();
        let said = complaint(at, "rerun o --out r", 2);
        assert!(said.contains("points outside the folder"), "{said}");
    }
    fs::write(at.join("o/scenario.toml"), &scenario).unwrap();
    for name in ["summary.json", "manifest.json", "flows.parquet", "scenario.toml"] {
        let (path, aside) = (at.join("o").join(name), at.join("aside"));
        fs::rename(&path, &aside).unwrap();
        link("../aside", &path);
        let said = complaint(at, "report o", 2);
        assert!(said.contains("leads out of its folder"), "{name}: {said}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    expect(at, "rerun o --out s", 0);
}

/// Inputs with the names of all output files: none is overwritten, and the folder runs again with
/// the same result.
#[test]
fn inputs_keep_out_of_the_way_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("logs")).unwrap();
    let names = ["manifest.json", "scenario.toml", "summary.json", "flows.parquet", "report.html"];
    let mut text = SMALL.to_string();
    for (number, name) in names.iter().enumerate() {
        fs::write(at.join("logs").join(name), format!("bytes\n{}\n", 1000 * (number + 1))).unwrap();
        let mix = format!(
            "{{ mix = {{ arrival_interval = \"200 ms\", sizes = {{ log = \"logs/{name}\" }} }} }}"
        );
        write!(text, "[[flow]]\nname = \"m{number}\"\ncc = \"reno\"\nworkload = {mix}\n").unwrap();
    }
    fs::write(at.join("a.toml"), text).unwrap();
    expect(at, "run a.toml --out first", 0);
    for name in names {
        let copy = fs::read(at.join("first/inputs").join(name)).unwrap();
        assert_eq!(copy, fs::read(at.join("logs").join(name)).unwrap(), "{name}");
    }
    fs::remove_dir_all(at.join("logs")).unwrap();
    expect(at, "run first/scenario.toml --out second", 0);
    expect(at, "run second/scenario.toml --out third", 0);
    for name in ["summary.json", "samples.parquet", "connections.parquet", "scenario.toml"] {
        let read = |out: &str| fs::read(at.join(out).join(name)).unwrap();
        assert!(read("first") == read("second") && read("second") == read("third"), "{name}");
    }
    // `--force` removes the inputs of the previous run.
    fs::write(at.join("b.toml"), SMALL).unwrap();
    expect(at, "run b.toml --out third --force", 0);
    assert!(!at.join("third/inputs").exists());
}

/// Names are arbitrary bytes, UTF-8 or not.
#[test]
fn names_need_not_be_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"r\xe9seau"));
    fs::create_dir(&odd).unwrap();
    let file = odd.join(OsStr::from_bytes(b"sc\xe9nario.toml"));
    let trace = SMALL.replace("rate = \"10 Mbit/s\"", "rate = { trace = \"lte.down\" }");
    fs::write(&file, trace).unwrap();
    fs::write(odd.join("lte.down"), "1\n2\n3\n").unwrap();
    let study = "name = \"A\"\nsource = \"B\"\n[[run]]\nname = \"a\"\nfile = \"a.toml\"\n";
    fs::write(odd.join("study.toml"), study).unwrap();
    fs::write(odd.join("a.toml"), SMALL).unwrap();
    let out = odd.join(OsStr::from_bytes(b"out\xff"));
    let commands: [&[&OsStr]; 4] = [
        &["check".as_ref(), file.as_ref()],
        &["run".as_ref(), file.as_ref(), "--out".as_ref(), out.as_ref()],
        &["report".as_ref(), out.as_ref()],
        &["check".as_ref(), odd.as_ref()],
    ];
    for command in commands {
        let output = knee(folder.path()).args(command).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command:?}\n{}", texts(&output).1);
    }
    assert_eq!(fs::read(out.join("inputs/lte.down")).unwrap(), b"1\n2\n3\n");
}

/// The numbers of claims, groups, links and paths, which are compared pairwise, are limited, so
/// that a check takes at most a second or two.
#[test]
#[ignore = "takes long: .ci/night random"]
fn what_is_too_many_is_refused() {
    let flow = |n: usize| format!("[[flow]]\nname = \"f{n}\"\npath = \"main\"\ncc = \"reno\"\n");
    let claim = |n: usize| {
        format!(
            "[[claim]]\nid = \"c{n}\"\nsays = \"a\"\nmeasure = \"goodput\"\nat_least = \"1 bit/s\"\n"
        )
    };
    let link = |n: usize| format!("[link.l{n}]\ndelay = \"1 ms\"\n");
    let path =
        |n: usize| format!("[path.p{n}]\nforward = [\"bottleneck\"]\nreverse_delay = \"1 ms\"\n");
    let entries: [(&str, &dyn Fn(usize) -> String); 4] =
        [("flow", &flow), ("claim", &claim), ("link", &link), ("path", &path)];
    for (what, entry) in entries {
        let many: String = (0..20_000).map(entry).collect();
        let folder = folder_with("a.toml", &format!("{SMALL}{many}"));
        let said = complaint(folder.path(), "check a.toml", 2);
        assert!(said.contains(&format!("entries of {what} are too many")), "{said}");
    }
    let many: String = (0..9_990).map(|n| flow(n) + &claim(n)).collect();
    let text = SMALL.replace("cc = \"bbr\"", "cc = \"bbr\"\npath = \"main\"");
    let folder = folder_with("a.toml", &format!("{text}{many}"));
    assert!(expect(folder.path(), "check a.toml", 0).contains("9990 claims"));
    // With as many errors, only the first are shown.
    fs::write(folder.path().join("b.toml"), many.replace("reno", "renno")).unwrap();
    let said = complaint(folder.path(), "check b.toml", 2);
    assert!(said.lines().count() < 2000 && said.contains("more problems"), "{}", said.len());
}

/// Foreign titles and names must not control the terminal or change how text reads.
#[test]
fn hidden_characters_are_spelt_out() {
    let hidden = |text: &str| {
        let found = text.chars().find(|c| knee_units::is_hidden(*c) && *c != '\n');
        assert_eq!(found, None, "{text:?}");
    };
    // TOML rejects raw control characters; its error quotes them.
    for (title, refused) in [(r"\u001b[2J", true), ("\u{202e}llams", true), ("\u{1b}[2J", true)] {
        let folder = folder_with("a.toml", &SMALL.replace("\"Small\"", &format!("\"{title}\"")));
        let said = complaint(folder.path(), "check a.toml", if refused { 2 } else { 0 });
        hidden(&said);
    }
    // Records that were not written by Knee.
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out o", 0);
    let mut summary = json(&at.join("o/summary.json"));
    summary["name"] = "\u{1b}]0;owned\u{7}\u{202e}gpj".into();
    summary["flows"][0]["name"] = "\u{1b}[31m\u{200b}red\u{9b}m".into();
    fs::write(at.join("o/summary.json"), summary.to_string()).unwrap();
    for line in ["compare o o --all", "compare o o --json", "report o"] {
        hidden(&expect(at, line, 0));
    }
    let page = fs::read_to_string(at.join("o/report.html")).unwrap();
    let shown: String = page.chars().filter(|c| !matches!(c, '\r' | '\t')).collect();
    hidden(&shown);
    assert!(page.contains(r"\u{202e}gpj"), "the title says what it hides");
    let odd = at.join("a\u{1b}[31m.toml");
    let output = knee(at).arg("check").arg(odd).output().unwrap();
    hidden(&texts(&output).1);
}

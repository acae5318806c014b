//! `knee serve` and `knee run --on hosts` on the command line, without a connection: files and
//! errors.

use crate::common::{complaint, expect, folder_with};
use std::fs;

const FLOW: &str = "duration = \"1 s\"\n[link.wire]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\
                    [path.main]\nforward = [\"wire\"]\nreverse_delay = \"1 ms\"\n\
                    [[flow]]\nname = \"f\"\ncc = \"cubic\"\n";

#[test]
fn init_writes_a_configuration_that_lacks_the_other_machine() {
    let folder = folder_with("nothing", "");
    let public = expect(folder.path(), "serve --init here.toml", 0);
    assert_eq!(public, expect(folder.path(), "bond keys here.key", 0));
    let said = complaint(folder.path(), "serve here.toml", 2);
    assert!(said.contains("line 2") && said.contains("44 letters"), "{said}");
    let again = complaint(folder.path(), "serve --init here.toml", 2);
    assert!(again.contains("cannot write here.toml"), "{again}");
}

#[test]
fn serve_names_what_is_wrong_and_what_to_do() {
    let folder = folder_with("serve.toml", "key = \"serve.key\"\nclient = []\n");
    let public = expect(folder.path(), "bond keys lab.key", 0);
    let client = format!("client = [{{ name = \"a\", key = \"{}\" }}]\n", public.trim());
    for (written, code, wanted) in [
        ("client = []", 2, "name at least one"),
        ("listen = \"[::]:0\"", 2, "name the port"),
        ("limits = { rate = \"0 Mbit/s\" }", 2, "write a rate above 0"),
        ("limits = { hours = \"22-6\" }", 2, "write \"22:00-06:00\""),
        ("limits = { connections = 0 }", 2, "number of connections at a time"),
        ("limits = { streams = 2 }", 2, "unknown field `streams`"),
        ("", 3, "cannot read serve.key"),
    ] {
        let client = if written.starts_with("client") { "" } else { &client };
        let text = format!("key = \"serve.key\"\n{client}{written}\n");
        fs::write(folder.path().join("serve.toml"), text).unwrap();
        let said = complaint(folder.path(), "serve serve.toml", code);
        assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
    }
}

/// The next attempt finds nothing of one that failed.
#[test]
fn init_leaves_no_configuration_without_its_key() {
    let folder = folder_with("serve.key", "no key");
    complaint(folder.path(), "serve --init serve.toml", 3);
    assert!(!folder.path().join("serve.toml").exists());
    fs::remove_file(folder.path().join("serve.key")).unwrap();
    expect(folder.path(), "serve --init serve.toml", 0);
}

#[test]
fn a_run_needs_the_file_of_the_other_machine() {
    let folder = folder_with("f.toml", FLOW);
    let public = expect(folder.path(), "bond keys lab.key", 0);
    let far =
        format!("host = \"127.0.0.1:9\"\nhost_key = \"{}\"\nkey = \"lab.key\"\n", public.trim());
    fs::write(folder.path().join("far.toml"), far).unwrap();
    for (line, code, wanted) in [
        ("run f.toml --on hosts", 3, "--host HOST.toml"),
        ("run f.toml --host far.toml", 2, "add --on hosts"),
        ("steer rehearse f.toml --on hosts", 3, "--host HOST.toml"),
        ("steer rehearse f.toml --host far.toml", 2, "add --on hosts"),
        ("run f.toml --on hosts --host near.toml", 2, "cannot read near.toml"),
        ("reproduce --on hosts", 2, "invalid value"),
        // Nothing listens there, and it is said before anything is written.
        ("run f.toml --on hosts --host far.toml", 3, "knee serve runs there"),
    ] {
        let said = complaint(folder.path(), line, code);
        assert!(said.contains(wanted), "{line}: {wanted:?} is not in {said:?}");
    }
}

/// A setting that would have no effect is named before anything is sent.
#[test]
fn settings_without_effect_are_refused() {
    let folder = folder_with("f.toml", FLOW);
    let public = expect(folder.path(), "bond keys lab.key", 0);
    let far =
        format!("host = \"127.0.0.1:9\"\nhost_key = \"{}\"\nkey = \"lab.key\"\n", public.trim());
    fs::write(folder.path().join("far.toml"), far).unwrap();
    let second = "[link.other]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                  [path.other]\nforward = [\"other\"]\nreverse_delay = \"1 ms\"\n\
                  [[flow]]\nname = \"g\"\ncc = \"cubic\"\n";
    let mptcp = "paths = [\"main\", \"other\"]\nscheduler = \"blest\"\n";
    for (further, wanted) in [
        ("path = \"main\"\n".to_owned() + second + "path = \"other\"\n", "write path = \"main\""),
        ("path = \"main\"\n".to_owned() + second + mptcp, "one path between them"),
        ("receive_window = \"1 MB\"\n".to_owned(), "receive_window"),
        ("header = \"72 B\"\n".to_owned(), "write header = 52 B, for IPv4"),
        ("initial_window = 40\n".to_owned(), "leave it at 10"),
        (
            "workload = { bursts = { size = \"10 kB\", pause = \"100 ms\" } }\n".to_owned(),
            "the other machine asks for nothing",
        ),
    ] {
        fs::write(folder.path().join("f.toml"), format!("{FLOW}{further}")).unwrap();
        let said = complaint(folder.path(), "run f.toml --on hosts --host far.toml", 2);
        assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
    }
}

//! `knee play` as a process: what it refuses. `benches/play.py` opens its page.

use crate::common::{SMALL, complaint, folder_with};

/// A build without the page says so, and how to have it.
#[cfg(not(feature = "live"))]
#[test]
fn a_build_without_the_page_says_so() {
    let folder = folder_with("a.toml", SMALL);
    let said = complaint(folder.path(), "play a.toml", 2);
    for wanted in ["cannot serve a page", "--features live", "knee run a.toml"] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
}

#[cfg(feature = "live")]
#[test]
fn what_cannot_be_served_is_named() {
    let two = "[[flow]]\nname = \"two\"\ncc = \"cubic\"\npaths = [\"a\", \"b\"]\n\
               [link.l]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
               [path.a]\nforward = [\"l\"]\nreverse_delay = \"1 ms\"\n\
               [path.b]\nforward = [\"l\"]\nreverse_delay = \"1 ms\"\n";
    let folder = folder_with("two.toml", &format!("duration = \"1 s\"\n{two}"));
    let at = folder.path();
    std::fs::write(at.join("a.toml"), SMALL).unwrap();
    for (line, wanted) in [
        ("play a.toml --page 192.0.2.1:80", "not a loopback address"),
        ("play two.toml", "not over one path"),
        ("play missing.toml", "cannot read it"),
        ("play /dev/zero", "not a regular file"),
    ] {
        let said = complaint(at, line, 2);
        assert!(said.contains(wanted), "{line}: {said}");
    }
}

//! `knee steer keys` and `sign`: policies that a host with a trusted key accepts.

use crate::common::{complaint, expect, folder_with};
use std::fs;

const POLICY: &str = "name = \"edge\"\nversion = 2\nexpires = 2999-01-01T00:00:00Z\n\
    actuator = \"route\"\n[[group]]\nname = \"all\"\nprefixes = [\"198.51.100.0/24\"]\n\
    controller = \"reno\"\n";

/// Policies that are unsigned, changed, older, expired or signed with an untrusted key are refused;
/// planning a policy does not record its version.
#[test]
fn only_signed_policies_are_taken() {
    let folder = folder_with("policy.toml", POLICY);
    let at = folder.path();
    let line = expect(at, "steer keys own.key", 0);
    assert_eq!(line, expect(at, "steer keys own.key", 0), "a key is made once");
    fs::write(at.join("trust"), &line).unwrap();
    expect(at, "steer keys other.key", 0);
    expect(at, "steer sign policy.toml --key own.key --out signed.toml", 0);
    expect(at, "steer sign policy.toml --key other.key --out other.toml", 0);
    let text = fs::read_to_string(at.join("signed.toml")).unwrap();
    assert!(text.starts_with(POLICY), "{text}");
    fs::write(at.join("changed.toml"), text.replace("/24", "/25")).unwrap();
    fs::write(at.join("late.toml"), POLICY.replace("2999", "1999")).unwrap();
    expect(at, "steer sign late.toml --key own.key --out late.toml", 0);

    let plan = |file: &str| format!("steer plan {file} --trust trust --versions versions");
    expect(at, &plan("signed.toml"), 0);
    assert!(!at.join("versions").exists());
    for (file, part) in [
        ("policy.toml", "not signed"),
        ("other.toml", "does not trust"),
        ("changed.toml", "was changed after"),
        ("late.toml", "expired"),
    ] {
        let said = complaint(at, &plan(file), 2);
        assert!(said.contains(part), "{file}: {said}");
    }
    fs::write(at.join("versions"), "{\"edge\":[3,\"\"]}").unwrap();
    let said = complaint(at, &plan("signed.toml"), 2);
    assert!(said.contains("version 2, but this host already had 3"), "{said}");
    fs::write(at.join("trust"), "12 me").unwrap();
    assert!(complaint(at, &plan("signed.toml"), 2).contains("line 1 is not a key"));
    let bare = POLICY.replace("version = 2\n", "");
    fs::write(at.join("policy.toml"), bare).unwrap();
    let said = complaint(at, "steer sign policy.toml --key own.key --out signed.toml", 2);
    assert!(said.contains("needs a version and an expiry"), "{said}");
}

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

/// A provider stands for its prefixes in the table beside the policy; what is not in it is named with
/// its place, and a signature covers no table.
#[test]
fn providers_come_from_a_table_of_their_own() {
    let providers = POLICY.replace("[[group]]", "networks = \"networks.csv\"\n[[group]]");
    let providers =
        providers.replace("prefixes = [\"198.51.100.0/24\"]", "providers = [\"One\", \"AS64497\"]");
    let folder = folder_with("policy.toml", &providers);
    let at = folder.path();
    let table = "prefix,asn,name\n203.0.113.0/24,64496,One\n192.0.2.0/25,64497,Two\n";
    let said = complaint(at, "steer plan policy.toml", 2);
    assert!(said.contains("cannot read networks.csv") && said.contains("policy.toml:5"), "{said}");
    fs::write(at.join("networks.csv"), table).unwrap();
    fs::create_dir(at.join("elsewhere")).unwrap();
    let said = expect(&at.join("elsewhere"), "steer plan ../policy.toml", 0);
    assert!(said.contains("203.0.113.0/24, 192.0.2.0/25"), "{said}");
    fs::write(at.join("wrong.toml"), providers.replace("\"One\"", "\"one\"")).unwrap();
    let said = complaint(at, "steer plan wrong.toml", 2);
    for part in ["networks.csv has no provider one", "did you mean One?", "wrong.toml:8"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    fs::write(at.join("networks.csv"), table.replace("64497", "none")).unwrap();
    let said = complaint(at, "steer plan policy.toml", 2);
    assert!(said.contains("line 3") && said.contains("not an AS number"), "{said}");
    expect(at, "steer keys own.key", 0);
    let said = complaint(at, "steer sign policy.toml --key own.key --out signed.toml", 2);
    assert!(said.contains("networks.csv is another file"), "{said}");
}

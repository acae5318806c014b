//! `knee bond` on the command line, without a network: keys and errors. Another test follows
//! `docs/bond.md` literally, and `knee-bond` has its own tests.

use crate::common::{complaint, expect, folder_with};
use std::fs;

#[test]
fn bond_keys_are_made_once() {
    let folder = folder_with("nothing", "");
    let first = expect(folder.path(), "bond keys", 0);
    let public = first.trim();
    assert_eq!(public.len(), 44, "{first}");
    assert!(fs::read_to_string(folder.path().join("bond.key")).unwrap().contains("PRIVATE KEY"));
    assert_eq!(expect(folder.path(), "bond keys bond.key", 0), first);
    assert_ne!(expect(folder.path(), "bond keys other.key", 0), first);
}

#[test]
fn bond_names_what_is_wrong_and_what_to_do() {
    let folder = folder_with("server.toml", "key = \"bond.key\"\nclient = []\n");
    for (line, code, wanted) in [
        ("bond serve server.toml", 2, "name at least one"),
        ("bond connect client.toml", 2, "cannot read client.toml"),
        ("bond keys nowhere/bond.key", 3, "cannot write nowhere/bond.key"),
        ("bond keys nowhere/bond.key", 3, "mkdir -p nowhere"),
        ("bond status --socket nothing.sock", 3, "no running knee bond found at nothing.sock"),
    ] {
        let said = complaint(folder.path(), line, code);
        assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
    }
    let config = "key = \"bond.key\"\nclient = [{ name = \"a\", key = \"PUBLIC\" }]\n";
    let public = expect(folder.path(), "bond keys client.key", 0);
    fs::write(folder.path().join("s.toml"), config.replace("PUBLIC", public.trim())).unwrap();
    let said = complaint(folder.path(), "bond serve s.toml", 3);
    assert!(said.contains("cannot read bond.key"), "{said}");
    let config = "key = \"bond.key\"\nserver = \"a:1\"\nserver_key = \"PUBLIC\"\n";
    fs::write(folder.path().join("c.toml"), config.replace("PUBLIC", public.trim())).unwrap();
    let said = complaint(folder.path(), "bond connect c.toml --forward 8080", 2);
    assert!(said.contains("--forward 8080") && said.contains("8080:db.example.org:80"), "{said}");
}

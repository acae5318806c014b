//! Files that somebody swaps while they are read.

use knee_scenario::{open_inside, read_open};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Somebody who can write to the folder swaps what is there for a link to a file that they may not
/// read, or for a pipe, while it is read.
#[test]
fn what_is_swapped_while_it_is_opened_leads_nowhere() {
    let folder = std::env::temp_dir().join(format!("knee-swapped-{}", std::process::id()));
    let (inner, secret) = (folder.join("inner"), folder.join("secret"));
    fs::create_dir_all(&inner).unwrap();
    fs::write(&secret, "secret").unwrap();
    fs::write(inner.join("plain"), "plain").unwrap();
    symlink(&secret, inner.join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(inner.join("pipe")).status().unwrap().success());
    let over = AtomicBool::new(false);
    let name = Path::new("name");
    thread::scope(|scope| {
        scope.spawn(|| {
            for other in ["plain", "link", "pipe"].into_iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // A second name of a file, a link or a pipe takes the place of the last one.
                let next = inner.join("next");
                fs::hard_link(inner.join(other), &next).unwrap();
                fs::rename(&next, inner.join(name)).unwrap();
                // It stays where both are names of one file (rename(2)).
                let _ = fs::remove_file(&next);
            }
        });
        let mut whole = 0;
        for _ in 0..20_000 {
            let opened = open_inside(&inner, name);
            let read = opened.and_then(|file| read_open(file, 1 << 20)).unwrap_or_default();
            if read == b"secret" {
                over.store(true, Ordering::Relaxed);
                panic!("a file outside the folder was read");
            }
            whole += usize::from(read == b"plain");
        }
        over.store(true, Ordering::Relaxed);
        assert!(whole > 0);
    });
    fs::remove_dir_all(&folder).unwrap();
}

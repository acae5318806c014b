//! Locking of a journal, and waiting for it.

use knee_policy::{Journal, PolicyError};
use std::thread;
use std::time::Duration;

/// A process that reverts releases the journal when done: a new process waits for it.
#[test]
#[allow(clippy::disallowed_methods, reason = "the other holds it for a while")]
fn a_journal_that_is_about_to_be_free_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (held, _) = Journal::hold(&path).unwrap();
    assert!(matches!(Journal::hold(&path), Err(PolicyError::Held { process: 0, .. })));
    let ends = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(held);
    });
    Journal::hold_next(&path).unwrap();
    ends.join().unwrap();
}

/// There is no waiting for a process that steers, which may last for days.
#[test]
fn a_process_that_steers_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (mut held, _) = Journal::hold(&path).unwrap();
    held.write(&[Journal::begin("edge", 0).unwrap()]).unwrap();
    let own = std::process::id();
    match Journal::hold_next(&path) {
        Err(PolicyError::Held { process, .. }) => assert_eq!(process, own),
        other => panic!("{other:?}"),
    }
}

/// A pipe as a journal is refused at once, to be read as well as to be held.
#[test]
fn a_pipe_is_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(Journal::read(&path).unwrap_err().to_string().contains("not a regular file"));
    assert!(Journal::hold(&path).unwrap_err().to_string().contains("not a regular file"));
}

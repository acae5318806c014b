//! The guard, with a pipe in place of the process that steers.

use crate::environment::{Call, Machine, SECOND};
use knee_policy::{Entry, GuardEnd, Journal, PolicyError, guard};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A journal of a process that has ended, with a rule.
fn left(path: &Path) {
    let mut ended = Command::new("true").spawn().unwrap();
    let process = ended.id();
    ended.wait().unwrap();
    let (mut journal, _) = Journal::hold(path).unwrap();
    let Entry::Begin { policy, at, namespace, .. } = Journal::begin("edge", 1).unwrap() else {
        panic!("a journal begins with something else");
    };
    let begin = Entry::Begin { policy, process, at, namespace };
    journal.write(&[begin, Entry::Rule { ipv6: false, table: 222, port: None }]).unwrap();
}

/// Guards a process that writes these bytes and then is silent, or ends; returns the end, what was
/// reverted and what the journal has then.
fn guarded(
    bytes: &[u8],
    goes_on: bool,
    held: bool,
) -> (Result<GuardEnd, PolicyError>, Vec<Call>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    left(&path);
    let holder = held.then(|| Journal::hold(&path).unwrap());
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(bytes).unwrap();
    let kept = goes_on.then_some(ours);
    let (mut machine, mut output) = (Machine::new(SECOND), Vec::new());
    let lease = Duration::from_millis(50);
    let end = guard(&path, theirs, &mut output, lease, &mut machine);
    assert_eq!(output, b".");
    drop((kept, holder));
    (end, machine.calls(), Journal::read(&path).unwrap().entries.len())
}

#[test]
fn a_dismissed_guard_changes_nothing() {
    let (end, calls, entries) = guarded(b"+++-", true, false);
    assert_eq!((end.unwrap(), calls, entries), (GuardEnd::Dismissed, Vec::new(), 2));
}

#[test]
fn a_guard_reverts_what_a_process_that_ended_left() {
    for bytes in [&b""[..], b"+", b"++"] {
        let (end, calls, entries) = guarded(bytes, false, false);
        assert!(matches!(end.unwrap(), GuardEnd::Ended(returned) if returned.routes == 2));
        assert_eq!((calls, entries), (vec![Call::RolledBack(2)], 0));
    }
}

/// Its journal stays, since that process may go on and read it.
#[test]
fn a_guard_reverts_what_a_silent_process_holds() {
    let (end, calls, entries) = guarded(b"+", true, true);
    assert!(matches!(end.unwrap(), GuardEnd::Silent(returned) if returned.routes == 2));
    assert_eq!((calls, entries), (vec![Call::RolledBack(2)], 2));
}

/// A new process, or a rollback, that holds the journal of one that ended reverts it itself.
#[test]
fn a_guard_leaves_a_held_journal_to_its_holder() {
    let (end, calls, entries) = guarded(b"", false, true);
    assert_eq!((end.unwrap(), calls, entries), (GuardEnd::Dismissed, Vec::new(), 2));
}

/// What a real process says on its standard output reaches the one that steers.
#[test]
fn a_guard_process_is_ready_renewed_and_dismissed() {
    let mut command = Command::new("sh");
    // Says that it is ready, and ends when it is dismissed.
    command.args(["-c", "printf .; exec cat >/dev/null"]);
    let mut process = knee_policy::GuardProcess::start(Ok(command)).unwrap();
    let end = process.renew().unwrap();
    assert!(end > knee_host::since_boot().unwrap());
    process.dismiss();
    let missing = knee_policy::GuardProcess::start(Ok(Command::new("/missing/guard")));
    assert!(missing.is_err_and(|error| error.to_string().contains("cannot start the process")));
    // One that has ended is noticed.
    let mut ends = Command::new("sh");
    ends.args(["-c", "printf ."]);
    let mut gone = knee_policy::GuardProcess::start(Ok(ends)).unwrap();
    let began = knee_host::since_boot().unwrap();
    while gone.renew().is_ok() {
        let waited = knee_host::since_boot().unwrap() - began;
        assert!(waited < 60 * SECOND, "a renewal without a guard");
    }
}

//! The ports of a host of a run.

use crate::host::scenario;
use crate::{TEN_MEGABIT, text};
use knee_host::sysctl;
use knee_kernel::{Control, run};
use knee_trials::namespaces::{entries, soon};
use knee_trials::{Pauses, Skipped, turn};
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

/// Enters a host of the run that this process performs.
fn enter_a_host() {
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let mut held = entries(Path::new("/proc/self/fd")).into_iter();
    let host = held.find(|file| {
        let target = fs::read_link(file).unwrap_or_default();
        target != own && target.to_string_lossy().starts_with("net:[")
    });
    setns(File::open(host.unwrap()).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
}

/// A busy mix opens a thousand connections per second, and each keeps its port for a minute (RFC 9293,
/// TIME-WAIT): as many ports as there are, and again after a second where timestamps permit it.
pub fn a_host_has_ports_for_a_busy_mix() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let control = Control::default();
    let scenario = scenario(&text("60 s", TEN_MEGABIT, "cc = \"cubic\""));
    let read = thread::scope(|scope| {
        let running = scope.spawn(|| run(&scenario, &control));
        let began = soon(|| control.now_ns.load(Ordering::Relaxed) > 0 || running.is_finished());
        let read = scope.spawn(|| {
            enter_a_host();
            ["net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse"].map(sysctl)
        });
        let read = read.join();
        control.stop.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
        assert!(began);
        read.unwrap()
    });
    let [range, reuse] = read.map(Result::unwrap);
    let range: Vec<u16> = range.split_whitespace().map(|port| port.parse().unwrap()).collect();
    assert!(range[1] - range[0] > 60_000, "{range:?}");
    assert_eq!(reuse, "1");
    Ok(())
}

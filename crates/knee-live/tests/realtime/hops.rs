//! Hops and planted losses: a chain of namespaces, whose links are known.

#![allow(clippy::disallowed_methods, reason = "the host is observed as time passes")]

use crate::open::{run, within};
use knee_host::{Namespace, Routing, set_sysctl};
use knee_live::{Hops, HopsSeen, LiveError};
use knee_trials::{Pauses, Skipped, Trial, Turn, trials, turn};
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Hosts of the chain: a sender, three routers, a receiver.
const HOSTS: usize = 5;
const LINKS: usize = HOSTS - 1;
/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// So many probes in an interval of 20 ms, since these routers report all of them.
const INTERVAL: Duration = Duration::from_millis(20);
const PROBES: u64 = 200;
const RECEIVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 7, LINKS as u8, 2), 5201);

/// Link number n, from 1 on, joins 10.7.n.1, nearer to the sender, and 10.7.n.2.
struct Chain([Namespace; HOSTS]);

impl Chain {
    fn new() -> Chain {
        let chain = Chain([(); HOSTS].map(|()| Namespace::create().unwrap()));
        for (index, host) in chain.0.iter().enumerate() {
            let done = host.within(|| -> Result<(), LiveError> {
                Routing::open()?.bring_up_loopback()?;
                set_sysctl("net.ipv4.ip_forward", "1")?;
                set_sysctl("net.ipv4.icmp_ratelimit", "0")?;
                if index > 0 {
                    let here = fs::read_link("/proc/thread-self").unwrap();
                    let here = format!("/proc/{}/ns/net", here.display());
                    chain.0[index - 1].within(|| -> Result<(), LiveError> {
                        run(&format!("ip link add right type veth peer name left netns {here}"));
                        run(&format!("ip addr add 10.7.{index}.1/24 dev right"));
                        run("ip link set right up");
                        Ok(())
                    })?;
                    run(&format!("ip addr add 10.7.{index}.2/24 dev left"));
                    run("ip link set left up");
                }
                Ok(())
            });
            done.unwrap();
        }
        for (index, host) in chain.0.iter().enumerate() {
            let before =
                (1..index).map(|link| format!("ip route add 10.7.{link}.0/24 via 10.7.{index}.1"));
            let next = index + 1;
            let beyond = (next + 1..=LINKS)
                .map(|link| format!("ip route add 10.7.{link}.0/24 via 10.7.{next}.2"));
            let lines: Vec<String> = before.chain(beyond).collect();
            within(host, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
        chain
    }

    /// Has a host drop a fifth of what comes from the side of the sender, at random.
    fn lose(&self, link: usize) {
        let rule = "hook prerouting priority 0; iifname \"left\" numgen random mod 10 < 2 drop";
        self.filter(link, rule);
    }

    /// Has a host report nothing.
    fn silence(&self, host: usize) {
        self.filter(host, "hook output priority 0; icmp type time-exceeded drop");
    }

    fn filter(&self, host: usize, rule: &str) {
        let rules = format!("table ip planted {{\nchain one {{\ntype filter {rule}\n}}\n}}\n");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), rules).unwrap();
        within(&self.0[host], &[&format!("nft -f {}", file.path().display())]);
    }

    /// What probes find; the receiver closes each connection after `closes`.
    fn seen(&self, closes: Option<Duration>) -> HopsSeen {
        let listener = self.0[HOSTS - 1].within(|| -> Result<_, LiveError> {
            let listener = TcpListener::bind(RECEIVER).unwrap();
            listener.set_nonblocking(true).unwrap();
            Ok(listener)
        });
        let (listener, is_over) = (listener.unwrap(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut open = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok((mut socket, _)) = listener.accept() {
                        // What a probe carries is never given to an application.
                        socket.set_nonblocking(true).unwrap();
                        assert!(socket.read(&mut [0; 9]).is_err());
                        open.push((Instant::now(), socket));
                    }
                    open.retain(|(at, _)| closes.is_none_or(|closes| at.elapsed() < closes));
                    thread::sleep(Duration::from_millis(5));
                }
                for (_, mut socket) in open {
                    let read = socket.read(&mut [0; 9]);
                    assert!(matches!(read, Ok(0) | Err(_)), "a probe was taken for data");
                }
            });
            let seen = self.0[0].within(|| -> Result<_, LiveError> {
                let hops = Hops::begin(RECEIVER, INTERVAL)?;
                let began = Instant::now();
                loop {
                    let seen = hops.seen();
                    let least = seen.hops.iter().map(|hop| hop.probes).min().unwrap_or(0);
                    assert_eq!(seen.failed, None);
                    if seen.is_whole && least >= PROBES {
                        return Ok(seen);
                    }
                    assert!(began.elapsed() < TIMEOUT, "{seen:?}");
                    thread::sleep(Duration::from_millis(20));
                }
            });
            is_over.store(true, Ordering::Relaxed);
            seen.unwrap()
        })
    }
}

fn ready() -> Result<Turn, Skipped> {
    if Command::new("nft").arg("-v").output().is_err() {
        return Err(Skipped::lack("the host lacks nft, of Debian's package nftables"));
    }
    turn(Pauses::UpToMs(200))
}

fn said(seen: &HopsSeen) -> String {
    let sentence = seen.sentence(RECEIVER);
    let routers: Vec<_> = seen.hops.iter().map(|hop| hop.router).collect();
    let expected = (1..=LINKS as u8).map(|link| Some(Ipv4Addr::new(10, 7, link, 2)));
    let is_silent = routers.contains(&None);
    assert!(is_silent || routers.iter().copied().eq(expected), "{routers:?} {sentence}");
    sentence
}

/// Without loss none is found, though the peer closes the connection again and again.
fn hops_without_loss_lose_nothing() -> Result<(), Skipped> {
    let _turn = ready()?;
    let clean = Chain::new().seen(Some(Duration::from_millis(700)));
    assert!(said(&clean).contains("no loss is found"), "{}", said(&clean));
    Ok(())
}

fn hops_of_planted_losses_are_named() -> Result<(), Skipped> {
    losses(&[3])
}

fn hops_of_the_first_and_the_last_link_are_named() -> Result<(), Skipped> {
    losses(&[1, 2, 4])
}

/// Losses of a fifth are found to begin where they do.
fn losses(links: &[usize]) -> Result<(), Skipped> {
    let _turn = ready()?;
    for &link in links {
        let chain = Chain::new();
        chain.lose(link);
        let near = match link {
            1 => "this host".to_string(),
            link => format!("hop {} (10.7.{}.2)", link - 1, link - 1),
        };
        let far = match link {
            LINKS => format!("10.7.{link}.2"),
            link => format!("hop {link} (10.7.{link}.2)"),
        };
        let sentence = said(&chain.seen(None));
        let place = format!("packets are lost between {near} and {far}: ");
        assert!(sentence.contains(&place) && !sentence.contains("; between"), "{sentence}");
    }
    Ok(())
}

/// Beyond a router that does not report, the next one is named.
fn hops_that_are_silent_are_passed_over() -> Result<(), Skipped> {
    let _turn = ready()?;
    let chain = Chain::new();
    chain.silence(2);
    chain.lose(3);
    let sentence = said(&chain.seen(None));
    assert!(sentence.contains("between hop 1 (10.7.1.2) and hop 3 (10.7.3.2)"), "{sentence}");
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        hops_without_loss_lose_nothing,
        hops_of_planted_losses_are_named;
        nightly:
        hops_of_the_first_and_the_last_link_are_named,
        hops_that_are_silent_are_passed_over
    ]
}

//! Settings that the kernel ground refuses. Every key is named here, or where it is used: a new one
//! does not compile until it is handled.

use super::{HEADER_V4, HEADER_V6, TIMESTAMPS, path_settings, tcp_header};
use crate::KernelError;
use knee_cc::RecoveryPeriod;
use knee_host::mptcp::SUBFLOWS_MAX;
use knee_scenario::{Flow, Multipath, Path, Scenario};
use knee_transport::{Config, Pacing, ReceiveWindow};
use knee_units::Time;

/// Linux's limits of TCP_MAXSEG.
const MSS_MIN: u32 = 88;
/// Minimum MTU of a link with IPv6 (RFC 8200, section 5).
const MTU_V6_MIN: u32 = 1280;

/// Refuses settings that the kernel ground does not support.
pub fn check_flow(scenario: &Scenario, flow: &Flow) -> Result<(), KernelError> {
    let Flow {
        // Only a label.
        name: _,
        index: _,
        paths,
        multipath,
        // Checked in `controller`.
        controller: _,
        transport,
        // Checked with the transport, whose key it is.
        send_jitter: _,
        // Handled with the applications, in `flows`.
        workload: _,
        // Refused in `Settings::new`.
        program: _,
        after,
        // Handled in `FlowSettings`.
        start: _,
        stop: _,
    } = flow;
    if after.is_some() {
        let problem = "a flow does not know when another's transfer is done".to_owned();
        return Err(unsupported(flow, "after", problem, "remove it, or run on sim".to_owned()));
    }
    check_transport(flow, transport)?;
    if let Some(multipath) = multipath {
        check_multipath(scenario, flow, multipath)?;
    }
    paths.iter().try_for_each(|path| {
        check_mtu(scenario, flow, *path)?;
        check_path(flow, &scenario.paths[*path])
    })
}

/// Checks the MTU of a path, which is that of the largest packets on it.
fn check_mtu(scenario: &Scenario, flow: &Flow, path: usize) -> Result<(), KernelError> {
    let mtu = path_settings(scenario, path).mtu;
    if tcp_header(flow) < HEADER_V6 || mtu >= MTU_V6_MIN {
        return Ok(());
    }
    let problem = format!("IPv6 does not work with packets of {mtu} B");
    let advice =
        format!("write mss and header of at least {MTU_V6_MIN} B together, or a header for IPv4");
    Err(unsupported(flow, "mss", problem, advice))
}

fn check_path(flow: &Flow, path: &Path) -> Result<(), KernelError> {
    // Both directions are the emulator's: `links_and_routes`.
    let Path { name: _, forward: _, reverse: _, absent, tunnel } = path;
    if !absent.is_empty() {
        let problem = "on the kernel ground a path cannot be absent".to_owned();
        let advice = "write down = … at a link, or run on sim".to_owned();
        return Err(unsupported(flow, "path", problem, advice));
    }
    if tunnel.is_some() {
        let problem = "on the kernel ground a queue sees each flow, not a tunnel".to_owned();
        let advice = "leave tunnel out at the path, or run on sim".to_owned();
        return Err(unsupported(flow, "path", problem, advice));
    }
    Ok(())
}

/// Checks a flow over MPTCP, for which the kernel has hardly any settings.
fn check_multipath(
    scenario: &Scenario,
    flow: &Flow,
    multipath: &Multipath,
) -> Result<(), KernelError> {
    let Multipath { scheduler, reinjection, backup } = multipath;
    let refuse = |key: &str, problem: &str, advice: &str| {
        Err(unsupported(flow, key, problem.to_owned(), advice.to_owned()))
    };
    let workload = flow.workload.properties();
    // Subflows are opened from the sending host, and counts are for one connection.
    if !(workload.pushes && workload.single) {
        let advice = "give the flow one path, or run on sim";
        return refuse(
            "paths",
            "over several paths, only bulk and file run on this ground",
            advice,
        );
    }
    if flow.paths.len() > SUBFLOWS_MAX {
        let problem = format!("the kernel's MPTCP has at most {SUBFLOWS_MAX} paths");
        return refuse("paths", &problem, "name fewer, or run on sim");
    }
    if scheduler.name != "blest" || !scheduler.parameters.is_empty() {
        let advice = "write scheduler = \"blest\", which is similar to the kernel's, or run on sim";
        return refuse("scheduler", "the kernel's MPTCP has only its own scheduler", advice);
    }
    if !reinjection {
        let advice = "leave it at true, or run on sim";
        return refuse("reinjection", "the kernel's MPTCP always repeats on another path", advice);
    }
    if backup.contains(&0) {
        let advice = "name a path first that is not a backup";
        return refuse("backup", "the kernel opens a connection over the first path", advice);
    }
    let config = &flow.transport;
    if config.pacing == Pacing::On || matches!(config.receive_window, ReceiveWindow::Fixed(_)) {
        let advice = "remove pacing and receive_window, or run on sim";
        return refuse("paths", "the kernel's MPTCP does not support this setting", advice);
    }
    let mut others =
        scenario.flows.iter().filter_map(|other| Some((other, other.multipath.as_ref()?)));
    if others.any(|(other, its)| other.paths != flow.paths || its.backup != *backup) {
        let advice = "the kernel has one set of paths per host: give all flows the same";
        return refuse(
            "paths",
            "they, or the backups, differ from those of another flow over several paths",
            advice,
        );
    }
    Ok(())
}

/// Refuses settings that the kernel's TCP does not support.
fn check_transport(flow: &Flow, transport: &Config) -> Result<(), KernelError> {
    let linux = Config::default();
    let Config {
        mss,
        // Includes the options that `tcp_header` subtracts.
        header: _,
        initial_window,
        acks,
        ack_every,
        ack_bytes,
        ack_frequency,
        ack_delay,
        quick_acks,
        lies,
        // Each of the three has a socket option or none: `receive_window`.
        receive_window: _,
        // Depends on who implements the controller: `check_pacing`.
        pacing: _,
        // A sysctl: `Settings::ecn`.
        ecn: _,
        sampler,
        recovery,
        min_rto,
        max_burst,
    } = *transport;
    let refuse = |key: &str, advice: &str| {
        let problem = "the kernel's TCP does not support this setting".to_owned();
        Err(unsupported(flow, key, problem, format!("{advice}, or run on sim")))
    };
    let bare = [HEADER_V4, HEADER_V6];
    let header = tcp_header(flow);
    if !bare.contains(&header) && !bare.contains(&header.wrapping_sub(TIMESTAMPS)) {
        return refuse("header", "write 40 B or 52 B for IPv4, 60 B or 72 B for IPv6");
    }
    if mss < MSS_MIN {
        return refuse("mss", "write at least 88 B");
    }
    if initial_window != linux.initial_window {
        return refuse("initial_window", "leave it at 10");
    }
    if acks != linux.acks {
        return refuse("acks", "leave it at tcp");
    }
    if ack_bytes.is_some() {
        return refuse("ack_bytes", "remove it");
    }
    if ack_frequency.is_some() {
        return refuse("ack_frequency", "remove it");
    }
    if !lies.is_honest() {
        return refuse("receiver", "remove it: the kernel's receiver is honest");
    }
    if ack_every != linux.ack_every || quick_acks != linux.quick_acks {
        return refuse("ack_every", "leave ack_every at 2 and quick_acks at 16");
    }
    if ack_delay != linux.ack_delay {
        return refuse("ack_delay", "leave it at 40 ms");
    }
    if min_rto != linux.min_rto {
        return refuse("min_rto", "leave it at 200 ms");
    }
    if max_burst != linux.max_burst {
        return refuse("max_burst", "leave it at 64 KiB, the kernel's own");
    }
    if !matches!(recovery, None | Some(RecoveryPeriod::Tcp)) {
        return refuse("recovery", "leave it at auto");
    }
    if sampler != linux.sampler {
        return refuse("sampler", "leave it at linux");
    }
    if flow.send_jitter > Time::ZERO {
        return refuse("send_jitter", "remove it: a real host has its own");
    }
    Ok(())
}

/// Refuses to switch off pacing for a controller that always paces.
pub fn check_pacing(flow: &Flow, paces: bool) -> Result<(), KernelError> {
    if flow.transport.pacing != Pacing::Off || !paces {
        return Ok(());
    }
    let problem = format!("the kernel always paces \"{}\"", flow.controller.name);
    Err(unsupported(flow, "pacing", problem, "leave it at auto, or run on sim".to_owned()))
}

pub fn unsupported(flow: &Flow, key: &str, problem: String, advice: String) -> KernelError {
    KernelError::Unsupported { place: format!("flow \"{}\", {key}", flow.name), problem, advice }
}

//! Flows to another machine, over the path that is there.
//!
//! The sending ends are sockets of this machine. The other machine discards what arrives, so what
//! was delivered is what its kernel has acknowledged. Each connection begins with a greeting that
//! tells the other machine what it belongs to. Nothing of this machine is changed: settings that
//! the kernel has once for a whole host must already be as the scenario needs them.

use crate::KernelError;
use crate::flows::{Applications, Receivers, listen};
use crate::run::settings;
use crate::settings::{FlowSettings, Settings, unsupported};
use knee_emulator::{Clock, realtime};
use knee_host::sysctl;
use knee_record::{Cost, Records, RowSender};
use knee_scenario::{Flow, Scenario};
use knee_testbed::Family;
use knee_transport::ReceiveWindow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The machine to which flows run.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Where it accepts connections, over IPv4 and IPv6 as far as it has both.
    pub addresses: Vec<SocketAddr>,
    /// First bytes of each connection. They count as sent, not as delivered.
    pub greeting: Vec<u8>,
}

impl Remote {
    /// Returns its first address of a family.
    pub(crate) fn address(&self, family: Family) -> Option<SocketAddr> {
        self.addresses.iter().copied().find(|at| at.is_ipv4() == (family == Family::V4))
    }
}

/// Runs the flows of a scenario to another machine until the scenario's end, or until `stop` is
/// set. Links and delays of the scenario are the simulator's model of the path, and are not used:
/// the records have neither links nor rates of paths, and the base RTT of all flows is the smallest
/// that any of them measured.
///
/// # Errors
///
/// The same errors as [`check_remote`], and those of connections.
pub fn run_remote(
    scenario: &Scenario,
    remote: &Remote,
    clock: Clock,
    stop: &AtomicBool,
    rows: RowSender,
) -> Result<Records, KernelError> {
    #[cfg_attr(not(feature = "bpf"), expect(unused_mut, reason = "nothing is registered"))]
    let mut settings = check(scenario, &remote.addresses)?;
    #[cfg(feature = "bpf")]
    let _registered = crate::run::register_bpf_controllers(&mut settings)?;
    let _awake = realtime::stay_awake();
    let receivers = Receivers::Remote(remote);
    let flows = listen(scenario, &settings, receivers)?;
    let mut applied = Applications::new(scenario, receivers, flows, (clock, stop), rows).run()?;
    let measured = applied.flows.iter().map(|flow| flow.rtt_min_ns).filter(|rtt| *rtt > 0).min();
    for flow in &mut applied.flows {
        flow.base_rtt_ns = measured.unwrap_or_default();
    }
    let end = clock.now().min(scenario.duration);
    let data_packets = applied.flows.iter().map(|flow| flow.delivered_packets).sum();
    Ok(Records {
        end_ns: end.as_nanos(),
        interrupted: stop.load(Ordering::Relaxed) && end < scenario.duration,
        cost: Cost { data_packets, ..Cost::default() },
        ..applied
    })
}

/// Checks that the flows of a scenario can run from this machine to another one at these addresses;
/// without addresses, all but the family of the flows is checked.
///
/// # Errors
///
/// The setting that the kernel or this machine does not support, and what to write instead.
pub fn check_remote(scenario: &Scenario, addresses: &[SocketAddr]) -> Result<(), KernelError> {
    check(scenario, addresses).map(drop)
}

fn check(scenario: &Scenario, addresses: &[SocketAddr]) -> Result<Settings, KernelError> {
    let settings = settings(scenario)?;
    for (flow, plan) in scenario.flows.iter().zip(&settings.flows) {
        check_flow(flow, plan)?;
        check_path(scenario, flow)?;
        check_family(flow, plan, addresses)?;
    }
    let Some(first) = scenario.flows.first() else { return Ok(settings) };
    let timestamps = is_on("net.ipv4.tcp_timestamps", |value| value != "0");
    check_host(first, "header", "net.ipv4.tcp_timestamps", settings.timestamps, timestamps)?;
    // With 2, the default, connections accept ECN and do not ask for it.
    let ecn = is_on("net.ipv4.tcp_ecn", |value| value == "1");
    check_host(first, "ecn", "net.ipv4.tcp_ecn", settings.ecn, ecn)?;
    Ok(settings)
}

fn is_on(name: &str, on: impl Fn(&str) -> bool) -> Option<bool> {
    sysctl(name).ok().map(|value| on(value.trim()))
}

/// Refuses what needs more of the other machine than to discard what arrives.
fn check_flow(flow: &Flow, plan: &FlowSettings) -> Result<(), KernelError> {
    let refuse = |key: &str, problem: String, advice: &str| {
        Err(unsupported(flow, key, problem, advice.to_owned()))
    };
    if plan.is_multipath() {
        let problem = "two machines have one path between them".to_owned();
        return refuse("paths", problem, "give the flow one path, or run on kernel or sim");
    }
    if !plan.workload.properties().pushes {
        let name = plan.workload.name();
        let problem = format!(
            "the receiver asks for what {name} sends, and the other machine asks for nothing"
        );
        let advice = "write bulk, a file or a mix, or run on kernel or sim";
        return refuse("workload", problem, advice);
    }
    if matches!(flow.transport.receive_window, ReceiveWindow::Fixed(_)) {
        let problem = "the other machine tunes its own".to_owned();
        return refuse("receive_window", problem, "remove it, or run on kernel or sim");
    }
    Ok(())
}

/// All flows take the same path, so a scenario in which they do not would name paths that are not
/// there.
fn check_path(scenario: &Scenario, flow: &Flow) -> Result<(), KernelError> {
    let Some(first) = scenario.flows.first().filter(|first| first.paths != flow.paths) else {
        return Ok(());
    };
    let path = &scenario.paths[first.paths[0]].name;
    let problem = format!("two machines have one path between them, which is \"{path}\"");
    let advice = format!("write path = \"{path}\", or run on kernel or sim");
    Err(unsupported(flow, "path", problem, advice))
}

fn check_family(
    flow: &Flow,
    plan: &FlowSettings,
    addresses: &[SocketAddr],
) -> Result<(), KernelError> {
    let fits = |at: &SocketAddr| at.is_ipv4() == (plan.family == Family::V4);
    if addresses.is_empty() || addresses.iter().any(fits) {
        return Ok(());
    }
    let (family, other) = match plan.family {
        Family::V4 => ("IPv4", "72 B, for IPv6"),
        Family::V6 => ("IPv6", "52 B, for IPv4"),
    };
    let problem = format!("the other machine has no address for {family}");
    Err(unsupported(flow, "header", problem, format!("write header = {other}")))
}

/// Checks a setting that the kernel has once for all connections of this machine, which is not
/// changed.
fn check_host(
    flow: &Flow,
    key: &str,
    name: &str,
    wanted: bool,
    found: Option<bool>,
) -> Result<(), KernelError> {
    let Some(found) = found.filter(|found| *found != wanted) else { return Ok(()) };
    let words = |on: bool| if on { "on" } else { "off" };
    let problem = format!("it needs {name} {}, which is {} here", words(wanted), words(found));
    let instead = match (key, found) {
        ("ecn", on) => format!("write ecn = {on}"),
        (_, true) => "write header = \"52 B\"".to_owned(),
        (_, false) => "write header = \"40 B\"".to_owned(),
    };
    let advice = format!("{instead}, or run sysctl -w {name}={}", u8::from(wanted));
    Err(unsupported(flow, key, problem, advice))
}

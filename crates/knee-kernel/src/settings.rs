//! What of a scenario the kernel's TCP can be set to, and how. What it
//! cannot is refused: numbers of something else would be no comparison.

use crate::KernelError;
use knee_cc::{RecoveryPeriod, Selection};
use knee_host::{HostError, sysctl};
use knee_scenario::{Flow, Multipath, Scenario, Workload};
use knee_transport::{Config, Pacing, ReceiveWindow};
use knee_units::{Rate, Time};

/// IP and TCP header without options.
const HEADER_V4: u32 = 40;
const HEADER_V6: u32 = 60;
/// The timestamp option with its padding (RFC 7323).
const TIMESTAMPS: u32 = 12;
/// MPTCP's option on segments with data: data ACK and mapping (RFC 8684).
const DATA_SEQUENCE_SIGNAL: u32 = 20;
/// Linux's own limits of TCP_MAXSEG.
const MSS_MIN: u32 = 88;

/// Which IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// A scenario as the kernel is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub paths: Vec<PathSettings>,
    pub flows: Vec<FlowSettings>,
    /// Controllers that the kernel has not and the run loads.
    pub bpf_controllers: Vec<BpfController>,
    /// TCP timestamps; the same for all connections.
    pub timestamps: bool,
    /// ECN is asked for; the same for all connections.
    pub ecn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSettings {
    pub mtu: u32,
    /// A flow uses IPv6.
    pub v6: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    pub label: String,
    /// The first of its paths.
    pub path: usize,
    /// All of its paths, of a flow over MPTCP; else empty.
    pub multipath: Vec<usize>,
    pub family: Family,
    /// As TCP_CONGESTION names it.
    pub controller: String,
    /// As TCP_MAXSEG counts it: options are part of it.
    pub max_segment: u32,
    /// Paced though the controller does not ask for it.
    pub paced: bool,
    /// The controller is one of Knee's in BPF, of which TCP_CC_INFO tells
    /// nothing: BPF has no such hook.
    pub in_bpf: bool,
    /// ... and it paces.
    pub paces_in_bpf: bool,
    pub receive_window: Option<u32>,
    /// Bytes not yet sent that the application keeps ready.
    pub ready_bytes: u32,
    pub workload: Workload,
    pub start: Time,
    pub stop: Option<Time>,
}

/// A controller in BPF that lives as long as a run.
#[derive(Clone, Debug, PartialEq)]
pub struct BpfController {
    /// As TCP_CONGESTION names it; of this process alone.
    pub name: String,
    pub selection: Selection,
}

impl FlowSettings {
    /// One connection, filled from its beginning: bulk or a file.
    pub fn is_stream(&self) -> bool {
        matches!(self.workload, Workload::Bulk | Workload::File(_))
    }

    /// Over MPTCP.
    pub fn is_multipath(&self) -> bool {
        !self.multipath.is_empty()
    }
}

impl Settings {
    pub fn new(scenario: &Scenario) -> Result<Settings, KernelError> {
        let available = sysctl("net.ipv4.tcp_available_congestion_control");
        let available = available.map_err(|source| {
            let advice = "let the container see /proc/sys";
            HostError::refused("ask for the kernel's congestion controllers", source, advice)
        })?;
        let mut bpf_controllers = Vec::new();
        let flows = scenario.flows.iter();
        let flows =
            flows.map(|flow| flow_settings(scenario, flow, &available, &mut bpf_controllers));
        Ok(Settings {
            flows: flows.collect::<Result<_, _>>()?,
            bpf_controllers,
            paths: (0..scenario.paths.len()).map(|path| path_settings(scenario, path)).collect(),
            timestamps: alike(scenario, "header", |flow| matches!(tcp_header(flow), 52 | 72))?,
            ecn: alike(scenario, "ecn", |flow| flow.transport.ecn)?,
        })
    }
}

/// IP and TCP header with TCP's own options, without MPTCP's.
fn tcp_header(flow: &Flow) -> u32 {
    let header = flow.transport.header;
    if flow.multipath.is_some() { header.saturating_sub(DATA_SEQUENCE_SIGNAL) } else { header }
}

fn path_settings(scenario: &Scenario, path: usize) -> PathSettings {
    let flows = || scenario.flows.iter().filter(move |flow| flow.paths.contains(&path));
    let mtu = flows().map(|flow| flow.transport.mss + flow.transport.header).max();
    let v6 = flows().any(|flow| tcp_header(flow) >= HEADER_V6);
    PathSettings { mtu: mtu.unwrap_or(1500), v6 }
}

fn flow_settings(
    scenario: &Scenario,
    flow: &Flow,
    available: &str,
    loaded: &mut Vec<BpfController>,
) -> Result<FlowSettings, KernelError> {
    check_transport(flow)?;
    check_carried(scenario, flow)?;
    let header = tcp_header(flow);
    let base = if header >= HEADER_V6 { HEADER_V6 } else { HEADER_V4 };
    let controller = controller(flow, available, loaded)?;
    let in_bpf = controller == "bbr_low_delay" || loaded.iter().any(|one| one.name == controller);
    let rate = scenario.path_rate(flow.paths[0]).unwrap_or(Rate::from_bits_per_second(u64::MAX));
    Ok(FlowSettings {
        label: format!("{}[{}]", flow.name, flow.index),
        path: flow.paths[0],
        multipath: flow.multipath.iter().flat_map(|_| flow.paths.clone()).collect(),
        family: if header >= HEADER_V6 { Family::V6 } else { Family::V4 },
        max_segment: flow.transport.mss + flow.transport.header - base,
        paced: flow.transport.pacing == Pacing::On,
        receive_window: receive_window(&flow.transport),
        // Twenty milliseconds: the thread that writes may come late.
        ready_bytes: rate.bytes_in(Time::from_millis(20)).clamp(1 << 17, 1 << 22) as u32,
        in_bpf,
        paces_in_bpf: in_bpf && paces(&flow.controller),
        controller,
        workload: flow.workload.clone(),
        start: flow.start,
        stop: flow.stop,
    })
}

/// The bound of the receive window; none: the kernel's automatic tuning,
/// with a maximum that is never reached.
fn receive_window(config: &Config) -> Option<u32> {
    match config.receive_window {
        ReceiveWindow::Fixed(bytes) => Some(bytes.min(1 << 30) as u32),
        ReceiveWindow::Unlimited | ReceiveWindow::Auto { .. } => None,
    }
}

/// The kernel's name of a controller: its own, with its own defaults, or one
/// that the run loads.
fn controller(
    flow: &Flow,
    available: &str,
    loaded: &mut Vec<BpfController>,
) -> Result<String, KernelError> {
    let selection = &flow.controller;
    // The kernel's own names, and those of loaded controllers, have no "-".
    let name = &selection.name.replace('-', "_");
    let is_there = available.split_whitespace().any(|known| known == name);
    if is_there && selection.parameters.is_empty() {
        return Ok(name.clone());
    }
    if let Some(name) = load_in_bpf(selection, loaded) {
        return Ok(name);
    }
    if is_there {
        let problem = format!("the kernel's \"{name}\" takes no parameters");
        let mut advice = format!("write cc = \"{name}\"");
        if name == "bbr" {
            advice += ", or build Knee with --features bpf and run as root";
        }
        return Err(unsupported(flow, "cc", problem, advice));
    }
    Err(KernelError::Controller {
        flow: flow.name.clone(),
        name: name.clone(),
        available: available.split_whitespace().collect::<Vec<_>>().join(", "),
    })
}

/// The name of a controller in BPF, where this build and the host have that.
#[cfg(feature = "bpf")]
fn load_in_bpf(selection: &Selection, loaded: &mut Vec<BpfController>) -> Option<String> {
    if !knee_host::bpf::can_register(selection) || knee_host::bpf::lack().is_some() {
        return None;
    }
    if let Some(same) = loaded.iter().find(|one| one.selection == *selection) {
        return Some(same.name.clone());
    }
    // At most 15 bytes: numbers of processes have seven digits at most.
    let name = format!("knee{}_{}", std::process::id(), loaded.len());
    loaded.push(BpfController { name: name.clone(), selection: selection.clone() });
    Some(name)
}

/// Whether a controller in BPF paces.
#[cfg(feature = "bpf")]
fn paces(selection: &Selection) -> bool {
    knee_host::bpf::paces(selection)
}

#[cfg(not(feature = "bpf"))]
fn paces(_: &Selection) -> bool {
    true
}

#[cfg(not(feature = "bpf"))]
fn load_in_bpf(_: &Selection, _: &mut Vec<BpfController>) -> Option<String> {
    None
}

/// What this ground does not drive yet.
fn check_carried(scenario: &Scenario, flow: &Flow) -> Result<(), KernelError> {
    let refuse = |key: &str, problem: &str, advice: &str| {
        Err(unsupported(flow, key, problem.to_owned(), advice.to_owned()))
    };
    check_multipath(scenario, flow)?;
    if flow.paths.iter().any(|path| !scenario.paths[*path].absent.is_empty()) {
        let advice = "write down = … at a link, or run on sim";
        return refuse("path", "on the kernel ground a path cannot be absent", advice);
    }
    Ok(())
}

/// What the kernel's MPTCP can be set to: nearly nothing.
fn check_multipath(scenario: &Scenario, flow: &Flow) -> Result<(), KernelError> {
    let Some(Multipath { scheduler, reinjection, backup }) = &flow.multipath else {
        return Ok(());
    };
    let refuse = |key: &str, problem: &str, advice: &str| {
        Err(unsupported(flow, key, problem.to_owned(), advice.to_owned()))
    };
    if !matches!(flow.workload, Workload::Bulk | Workload::File(_)) {
        let advice = "give the flow one path, or run on sim";
        return refuse("paths", "over several paths only bulk and files run here", advice);
    }
    if scheduler.name != "blest" || !scheduler.parameters.is_empty() {
        let advice = "write scheduler = \"blest\", which the kernel's is like, or run on sim";
        return refuse("scheduler", "the kernel's MPTCP has its own scheduler only", advice);
    }
    if !reinjection {
        let advice = "leave it at true, or run on sim";
        return refuse("reinjection", "the kernel's MPTCP always repeats on another path", advice);
    }
    if !backup.is_empty() {
        return refuse("backup", "the kernel ground has no backup paths", "leave it out");
    }
    let config = &flow.transport;
    if config.pacing == Pacing::On || matches!(config.receive_window, ReceiveWindow::Fixed(_)) {
        let advice = "leave pacing and receive_window out, or run on sim";
        return refuse("paths", "the kernel's MPTCP cannot be set so", advice);
    }
    let mut others = scenario.flows.iter().filter(|other| other.multipath.is_some());
    if others.any(|other| other.paths != flow.paths) {
        let advice = "the kernel announces one set of paths for a host: give all the same";
        return refuse("paths", "differ from those of another flow over several", advice);
    }
    Ok(())
}

/// What the kernel's TCP cannot be set to. Every setting is named here: a new
/// one does not compile until somebody has decided about it.
fn check_transport(flow: &Flow) -> Result<(), KernelError> {
    let linux = Config::default();
    let Config {
        mss,
        // With the options that `tcp_header` takes off.
        header: _,
        initial_window,
        ack_every,
        ack_delay,
        quick_acks,
        // Each of the three has its socket option or none: `receive_window`.
        receive_window: _,
        pacing,
        // A sysctl: `Settings::ecn`.
        ecn: _,
        sampler,
        recovery,
        min_rto,
        max_burst,
    } = flow.transport;
    let refuse = |key: &str, advice: &str| {
        let problem = "the kernel's TCP cannot be set so".to_owned();
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
    if ack_every != linux.ack_every || quick_acks != linux.quick_acks {
        return refuse("ack_every", "leave ack_every at 2 and quick_acks at 16");
    }
    if ack_delay != linux.ack_delay {
        return refuse("ack_delay", "leave it at 40 ms");
    }
    if min_rto != linux.min_rto {
        return refuse("min_rto", "leave it at 200 ms");
    }
    if pacing == Pacing::Off && flow.controller.name.starts_with("bbr") {
        return refuse("pacing", "BBR is always paced: leave it at auto");
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
    Ok(())
}

/// What is one setting for the whole of a namespace.
fn alike(
    scenario: &Scenario,
    key: &str,
    setting: impl Fn(&Flow) -> bool,
) -> Result<bool, KernelError> {
    let Some(first) = scenario.flows.first() else { return Ok(true) };
    let wanted = setting(first);
    match scenario.flows.iter().find(|flow| setting(flow) != wanted) {
        None => Ok(wanted),
        Some(other) => {
            let problem = format!("differs from that of flow \"{}\"", first.name);
            let advice = "the kernel has one setting for a host: give all flows the same";
            Err(unsupported(other, key, problem, advice.to_owned()))
        }
    }
}

fn unsupported(flow: &Flow, key: &str, problem: String, advice: String) -> KernelError {
    KernelError::Unsupported { place: format!("flow \"{}\", {key}", flow.name), problem, advice }
}

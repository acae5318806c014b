//! Converts the settings of a scenario to those of the kernel's TCP. Unsupported ones are refused,
//! because the results would not be comparable.

mod refused;
#[cfg(test)]
mod tests;

use crate::KernelError;
use crate::flows::FLOWS_MAX;
use knee_cc::Selection;
use knee_host::{ControllerState, HostError, sysctl};
use knee_scenario::{Flow, Scenario, Workload};
use knee_testbed::{Family, PathSettings};
use knee_transport::{Config, Pacing, ReceiveWindow};
use knee_units::{Rate, Time};
pub use refused::unsupported;
use refused::{check_flow, check_pacing};
use std::os::fd::AsFd;

/// IP and TCP header without options.
const HEADER_V4: u32 = 40;
const HEADER_V6: u32 = 60;
/// Length of the timestamp option with its padding (RFC 7323).
const TIMESTAMPS: u32 = 12;
/// Length of MPTCP's option on segments with data: data ACK and mapping (RFC 8684).
const DATA_SEQUENCE_SIGNAL: u32 = 20;

/// Kernel settings of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub paths: Vec<PathSettings>,
    pub flows: Vec<FlowSettings>,
    /// Controllers that the kernel lacks and the run loads.
    pub bpf_controllers: Vec<BpfController>,
    /// TCP timestamps; the same for all connections.
    pub timestamps: bool,
    /// Whether ECN is requested; the same for all connections.
    pub ecn: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    /// Its place in the scenario.
    pub index: usize,
    pub label: String,
    /// The first of its paths.
    pub path: usize,
    /// All of its paths, for a flow over MPTCP; otherwise empty.
    pub multipath: Vec<usize>,
    /// Those of them that are used only if no other can be.
    pub backup: Vec<usize>,
    pub family: Family,
    /// Name for TCP_CONGESTION.
    pub controller: String,
    /// Value for TCP_MAXSEG, which includes options.
    pub max_segment: u32,
    /// Whether to pace although the controller does not ask for it.
    pub paced: bool,
    /// Whether the controller is one of Knee's in BPF, for which TCP_CC_INFO is empty: BPF has no
    /// such hook.
    pub in_bpf: bool,
    /// What that controller knows of its connections, once it is registered.
    #[cfg(feature = "bpf")]
    pub states: Option<knee_host::bpf::ConnectionStates>,
    /// Whether that controller paces.
    pub paces_in_bpf: bool,
    pub receive_window: Option<u32>,
    /// Unsent bytes that the application keeps ready.
    pub ready_bytes: u32,
    pub workload: Workload,
    pub start: Time,
    pub stop: Option<Time>,
}

/// A controller in BPF that is loaded for the duration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct BpfController {
    /// Name for TCP_CONGESTION, unique to this process.
    pub name: String,
    pub selection: Selection,
}

impl FlowSettings {
    /// Returns whether it is over MPTCP.
    pub fn is_multipath(&self) -> bool {
        !self.multipath.is_empty()
    }

    /// Returns what a controller in BPF knows of a connection, if it shows that.
    #[cfg(feature = "bpf")]
    pub fn state_in_bpf(&self, socket: &impl AsFd) -> Option<ControllerState> {
        self.states.as_ref()?.of_socket(socket)
    }

    /// Nothing: this build has no controllers in BPF.
    #[cfg(not(feature = "bpf"))]
    pub fn state_in_bpf(&self, _: &impl AsFd) -> Option<ControllerState> {
        None
    }
}

impl Settings {
    /// Settings of a scenario in which no flow is a program.
    pub fn new(scenario: &Scenario) -> Result<Settings, KernelError> {
        if let Some(flow) = scenario.flows.iter().find(|flow| flow.program.is_some()) {
            let problem = "it runs on the ground programs alone".to_owned();
            let advice = "add --on programs, or write workload in its place".to_owned();
            return Err(unsupported(flow, "program", problem, advice));
        }
        Settings::of_own_flows(scenario)
    }

    /// Settings of the flows that are no programs.
    pub fn of_own_flows(scenario: &Scenario) -> Result<Settings, KernelError> {
        if scenario.flows.len() > FLOWS_MAX {
            return Err(KernelError::Unsupported {
                place: "scenario".to_owned(),
                problem: format!("it has {} flows", scenario.flows.len()),
                advice: format!("write at most {FLOWS_MAX}, each needs a port"),
            });
        }
        let available = sysctl("net.ipv4.tcp_available_congestion_control");
        let available = available.map_err(|source| {
            let advice = "let the container see /proc/sys";
            HostError::refused("query the kernel's congestion controllers", source, advice)
        })?;
        let mut bpf_controllers = Vec::new();
        let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.program.is_none());
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

/// Returns the length of the IP and TCP header with TCP's own options, without MPTCP's.
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
    (index, flow): (usize, &Flow),
    available: &str,
    loaded: &mut Vec<BpfController>,
) -> Result<FlowSettings, KernelError> {
    check_flow(scenario, flow)?;
    let header = tcp_header(flow);
    let base = if header >= HEADER_V6 { HEADER_V6 } else { HEADER_V4 };
    let controller = controller(flow, available, loaded)?;
    let in_bpf = controller == "bbr_low_delay" || loaded.iter().any(|one| one.name == controller);
    let paces_in_bpf = in_bpf && paces(&flow.controller);
    check_pacing(flow, paces_in_bpf || controller.starts_with("bbr"))?;
    let rate = scenario.path_rate(flow.paths[0]).unwrap_or(Rate::from_bits_per_second(u64::MAX));
    Ok(FlowSettings {
        index,
        label: format!("{}[{}]", flow.name, flow.index),
        path: flow.paths[0],
        multipath: flow.multipath.iter().flat_map(|_| flow.paths.clone()).collect(),
        backup: flow.multipath.iter().flat_map(|m| &m.backup).map(|at| flow.paths[*at]).collect(),
        family: if header >= HEADER_V6 { Family::V6 } else { Family::V4 },
        max_segment: flow.transport.mss + flow.transport.header - base,
        paced: flow.transport.pacing == Pacing::On,
        receive_window: receive_window(&flow.transport),
        // 20 ms of data: the thread that writes may be late.
        ready_bytes: rate.bytes_in(Time::from_millis(20)).clamp(1 << 17, 1 << 22) as u32,
        in_bpf,
        #[cfg(feature = "bpf")]
        states: None,
        paces_in_bpf,
        controller,
        workload: flow.workload.clone(),
        start: flow.start,
        stop: flow.stop,
    })
}

/// Returns the limit of the receive window, or `None` for the kernel's autotuning, with a maximum
/// that is never reached.
fn receive_window(config: &Config) -> Option<u32> {
    match config.receive_window {
        ReceiveWindow::Fixed(bytes) => Some(bytes.min(1 << 30) as u32),
        ReceiveWindow::Unlimited | ReceiveWindow::Auto { .. } => None,
    }
}

/// Returns the kernel's name of a controller: one of its own, with its own defaults, or one that
/// the run loads.
fn controller(
    flow: &Flow,
    available: &str,
    loaded: &mut Vec<BpfController>,
) -> Result<String, KernelError> {
    let selection = &flow.controller;
    if let Some(parameter) = knee_cc::not_in_kernel(selection) {
        let problem = format!("BBR has no {parameter} in the kernel, nor in BPF");
        return Err(unsupported(flow, "cc", problem, format!("remove {parameter}")));
    }
    // Neither the kernel's own names nor those of loaded controllers contain "-".
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

/// Returns the name of a BPF controller, if this build and the host support it.
#[cfg(feature = "bpf")]
fn load_in_bpf(selection: &Selection, loaded: &mut Vec<BpfController>) -> Option<String> {
    if !knee_host::bpf::can_register(selection) || knee_host::bpf::lack().is_some() {
        return None;
    }
    if let Some(same) = loaded.iter().find(|one| one.selection == *selection) {
        return Some(same.name.clone());
    }
    // At most 15 bytes: process ids have at most seven digits.
    let name = format!("knee{}_{}", std::process::id(), loaded.len());
    loaded.push(BpfController { name: name.clone(), selection: selection.clone() });
    Some(name)
}

/// Returns whether a BPF controller paces.
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

/// Checks a setting that must be the same for the whole namespace.
fn alike(
    scenario: &Scenario,
    key: &str,
    setting: impl Fn(&Flow) -> bool,
) -> Result<bool, KernelError> {
    let mut own = scenario.flows.iter().filter(|flow| flow.program.is_none());
    let Some(first) = own.next() else { return Ok(true) };
    let wanted = setting(first);
    match own.find(|flow| setting(flow) != wanted) {
        None => Ok(wanted),
        Some(other) => {
            let problem = format!("differs from that of flow \"{}\"", first.name);
            let advice = "the kernel has one setting per host: give all flows the same";
            Err(unsupported(other, key, problem, advice.to_owned()))
        }
    }
}

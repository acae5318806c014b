//! A run with flows that are programs, and others of Knee's own beside them.

use crate::flows::{Finding, Programs, RunningFlow, port};
use crate::shell::{permit, twice};
use crate::sockets::{Known, Sockets};
use crate::traffic::{FlowCounters, rows_of};
use knee_host::{HostError, set_sysctl};
use knee_kernel::{KernelError, OwnFlows};
use knee_record::{
    ConnectionRecord, Control, ControllerSource, FlowRecord, FlowSample, OUTPUT, Row, RowSender,
    SampleSink,
};
use knee_scenario::{Flow, Scenario};
use knee_testbed::{
    Clock, FiveTuple, FlowTable, Observed, Observing, PathSettings, Played, SampleFlows, Testbed,
    TestbedError,
};
use knee_transport::Config;
use knee_units::Time;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Maximum number of flows, each with two programs and a port.
const FLOWS_MAX: usize = 100;
/// Minimum MTU of a link with IPv6 (RFC 8200, section 5).
const MTU_V6_MIN: u32 = 1280;
/// Maximum size of socket buffers, which bound the windows: that of the kernel ground.
const SOCKET_BYTES_MAX: u64 = 1 << 29;

/// Why a run was not possible.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The two hosts or the network between them cannot be created.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// Knee's own flows beside the programs cannot run.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Programs cannot do what a flow asks for.
    #[error("{place}: {problem}: {advice}")]
    Unsupported {
        /// Place in the scenario.
        place: String,
        /// What is not possible.
        problem: String,
        /// What to write instead.
        advice: String,
    },
}

impl From<HostError> for ProgramsError {
    fn from(error: HostError) -> ProgramsError {
        TestbedError::from(error).into()
    }
}

/// A run that ended.
#[derive(Debug)]
pub struct ProgramsEnded {
    /// The run.
    pub played: Played,
    /// What is to be said of the programs, by flow.
    pub findings: Vec<Finding>,
}

/// Runs a scenario to its end, or until `control` says to stop. `folder` is that of the run:
/// certificates and the programs' output go to its [`OUTPUT`]. Without one they have a temporary one.
///
/// # Errors
///
/// The errors of [`check_scenario`], what the host does not permit, or a row that cannot be stored. A
/// program that fails is a finding.
pub fn run_flows(
    scenario: &Scenario,
    control: &Control,
    samples: &mut dyn SampleSink,
    capture: Option<File>,
    folder: Option<&Path>,
) -> Result<ProgramsEnded, ProgramsError> {
    check_scenario(scenario)?;
    let temporary;
    let folder = match folder {
        Some(folder) => folder,
        None => {
            let made = tempfile::tempdir();
            temporary =
                made.map_err(|source| HostError::call("make a temporary folder", source))?;
            temporary.path()
        }
    };
    let folder = std::fs::canonicalize(folder)
        .map_err(|source| HostError::refused("open the folder of the run", source, "see --out"))?;
    let output = folder.join(OUTPUT);
    let settings = (0..scenario.paths.len()).map(|path| path_settings(scenario, path));
    let mut own = OwnFlows::new(scenario)?;
    let (hosts, devices) = own.create_hosts(&settings.collect::<Vec<_>>(), set_up)?;
    let testbed = Testbed { scenario, hosts: &hosts };
    let checked = testbed.self_check(devices)?;
    let clock = Clock::start();
    let mut programs = Programs::start(scenario, &hosts, (&folder, &output), clock)?;
    programs.wait_until_ready(clock, &control.stop);
    let own = own.listen(scenario, &hosts)?;
    let sockets = Sockets::default();
    let (capture, kept) = twice(capture)?;
    let observing = Observing { capture, sample: Some(sampled(scenario, &sockets)) };
    let run = |clock: Clock, stop: &AtomicBool, rows: RowSender| {
        let done = AtomicBool::new(false);
        let ports = port(0)..=port(FLOWS_MAX);
        let timing = (clock, scenario.sample_interval);
        // Neither side goes on once the other has failed.
        let end = || stop.store(true, Ordering::Relaxed);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| sockets.watch(&hosts.sender, ports, timing, &done));
            let own = scope.spawn(|| own.run(clock, stop, rows).inspect_err(|_| end()));
            let ran = programs.run(clock, stop).inspect_err(|_| end());
            let own = own.join().map_err(|_| TestbedError::Panicked);
            done.store(true, Ordering::Relaxed);
            watcher.join().map_err(|_| TestbedError::Panicked)??;
            ran?;
            Ok::<_, ProgramsError>(own??)
        })
    };
    let mut played = testbed.play(checked, control, samples, Some(observing), run)?;
    let mut observed = played.observed.take().unwrap_or_default();
    programs.complete_capture(kept.as_ref(), &mut observed);
    let counters = |flow: &RunningFlow<'_>| FlowCounters::of(&observed.flows, flow.port);
    let records = &mut played.records;
    let of_programs = programs.flows.iter().map(|flow| {
        let row = record(scenario, flow, &counters(flow), records.end_ns);
        with_sockets(row, &sockets.known_of(flow.port))
    });
    records.flows.extend(of_programs);
    records.flows.sort_by_key(|flow| flow.flow);
    records.cost.data_packets = records.flows.iter().map(|flow| flow.delivered_packets).sum();
    let rows = connections(scenario, &programs, &observed, &sockets);
    rows.iter().try_for_each(|row| samples.connection(row)).map_err(TestbedError::from)?;
    records.connections.extend(rows);
    let mut findings = Vec::new();
    for flow in &programs.flows {
        findings.extend(flow.findings(counters(flow).delivered));
        findings.extend(flow.other_controller(&sockets.known_of(flow.port)));
    }
    let records = std::mem::take(records).with_rates(scenario);
    let played = Played { records, observed: Some(observed), ..played };
    Ok(ProgramsEnded { played, findings })
}

/// Checks whether programs can run a scenario, without running anything.
///
/// # Errors
///
/// [`ProgramsError::Unsupported`].
pub fn check_scenario(scenario: &Scenario) -> Result<(), ProgramsError> {
    let programs = || scenario.flows.iter().filter(|flow| flow.program.is_some());
    let refuse = |problem: String, advice: String| {
        Err(ProgramsError::Unsupported { place: "scenario".to_owned(), problem, advice })
    };
    match programs().count() {
        0 => {
            let advice = "add [flow.program] with server and client, or run on another ground";
            return refuse("no flow is a program".to_owned(), advice.to_owned());
        }
        1..=FLOWS_MAX => {}
        more => {
            let advice = format!("write at most {FLOWS_MAX}, each has two programs");
            return refuse(format!("{more} flows are programs"), advice);
        }
    }
    programs().try_for_each(|flow| check_flow(scenario, flow))?;
    OwnFlows::new(scenario)?;
    Ok(())
}

fn check_flow(scenario: &Scenario, flow: &Flow) -> Result<(), ProgramsError> {
    let refuse = |key: &str, problem: &str, advice: &str| {
        Err(ProgramsError::Unsupported {
            place: format!("flow \"{}\", {key}", flow.name),
            problem: problem.to_owned(),
            advice: advice.to_owned(),
        })
    };
    if flow.multipath.is_some() {
        let advice = "write path in place of paths; KNEE_PATHS has the addresses of all";
        return refuse("paths", "a program has one path of its own", advice);
    }
    if !flow.controller.parameters.is_empty() {
        let advice = "write its name alone, for {cc} in the commands";
        return refuse("cc", "a program does not know parameters of Knee's controllers", advice);
    }
    let Config { mss, header, .. } = flow.transport;
    if flow.transport != (Config { mss, header, ..Config::default() })
        || flow.send_jitter > Time::ZERO
    {
        let advice = "remove all but mss and header, which make the MTU";
        return refuse("transport", "a program has a transport of its own", advice);
    }
    let path = &scenario.paths[flow.paths[0]];
    if !path.absent.is_empty() || path.tunnel.is_some() {
        let advice = "write down = … at a link in place of absent, and leave tunnel out";
        return refuse("path", "a path of programs cannot be absent or in a tunnel", advice);
    }
    Ok(())
}

fn path_settings(scenario: &Scenario, path: usize) -> PathSettings {
    let flows = scenario.flows.iter().filter(|flow| flow.paths.contains(&path));
    let mtu = flows.map(|flow| flow.transport.mss + flow.transport.header).max().unwrap_or(1500);
    PathSettings { mtu, v6: mtu >= MTU_V6_MIN }
}

/// Settings of a host.
fn set_up() -> Result<(), HostError> {
    permit()?;
    // Connections beside them must not have one of their ports.
    let ports = format!("{}-{}", port(0), port(FLOWS_MAX));
    set_sysctl("net.ipv4.ip_local_reserved_ports", &ports)?;
    set_sysctl("net.ipv4.tcp_rmem", &format!("4096 131072 {SOCKET_BYTES_MAX}"))?;
    set_sysctl("net.ipv4.tcp_wmem", &format!("4096 16384 {SOCKET_BYTES_MAX}"))?;
    // Metrics learned by one connection must not help the next.
    set_sysctl("net.ipv4.tcp_no_metrics_save", "1")
}

/// Makes the rows of the flows at each sampling interval from what an observer saw.
fn sampled(scenario: &Scenario, sockets: &Sockets) -> SampleFlows {
    let sockets = sockets.clone();
    let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.program.is_some());
    let flows = flows.map(|(index, flow)| (index, flow, scenario.flow_base_rtt(index)));
    let flows = flows.map(|(index, flow, base)| (index, flow.paths[0], flow.start, base));
    let flows: Vec<_> = flows.collect();
    Box::new(move |now: Time, table: &FlowTable, rows: &RowSender| {
        for (number, (index, path, start, base)) in flows.iter().enumerate() {
            if now < *start {
                continue;
            }
            let counters = FlowCounters::of(table, port(number));
            let tcp = sockets.state(port(number), now).unwrap_or_default();
            rows.send(Row::Flow(FlowSample {
                flow: *index as u32,
                path: *path as u16,
                time_ns: now.as_nanos(),
                delivered_bytes: counters.delivered,
                sent_bytes: counters.sent,
                retransmitted_bytes: counters.retransmitted,
                sent_packets: counters.packets,
                lost_bytes: counters.retransmitted,
                in_flight_bytes: tcp.in_flight_bytes,
                window_bytes: tcp.window_bytes,
                rtt_ns: tcp.srtt_ns,
                srtt_ns: tcp.srtt_ns,
                path_rtt_ns: counters.queueing.map_or(0, |queueing| (*base + queueing).as_nanos()),
                slow_start_threshold_bytes: tcp.threshold_bytes,
                phase: tcp.phase,
                ..FlowSample::default()
            }));
        }
    })
}

fn record(
    scenario: &Scenario,
    running: &RunningFlow<'_>,
    counters: &FlowCounters,
    end_ns: u64,
) -> FlowRecord {
    let (index, flow, transport) = (running.index, running.flow, &running.flow.transport);
    let started = running.started.unwrap_or(flow.start);
    // What a program does before its first packet is not the network's.
    let start = counters.first.map_or(started, |first| first.max(started));
    let whole = flow.workload.properties().bytes.is_none_or(|bytes| counters.delivered >= bytes);
    let completed = running.completed.filter(|_| whole);
    let end = running.ended.map_or(end_ns, |at| at.as_nanos().min(end_ns)).max(start.as_nanos());
    FlowRecord {
        flow: index as u32,
        name: flow.name.clone(),
        index: flow.index as u32,
        cc: flow.controller.name.clone(),
        path: scenario.flow_path_names(index),
        start_ns: start.as_nanos(),
        end_ns: end,
        size_bytes: flow.workload.properties().bytes.unwrap_or(0),
        completion_ns: completed.map(|at| at.saturating_sub(start).as_nanos()),
        delivered_bytes: counters.delivered,
        delivered_packets: counters.delivered.div_ceil(u64::from(transport.mss)),
        sent_bytes: counters.sent,
        retransmitted_bytes: counters.retransmitted,
        base_rtt_ns: scenario.flow_base_rtt(index).as_nanos(),
        header_overhead: f64::from(transport.mss + transport.header) / f64::from(transport.mss),
        marked_bytes: counters.marked_packets * u64::from(transport.mss),
        ..FlowRecord::default()
    }
}

/// Adds what the kernel knows of the flow's connections.
fn with_sockets(row: FlowRecord, known: &[Known]) -> FlowRecord {
    let least = known.iter().filter_map(|one| one.info.min_rtt()).min();
    let most_us = known.iter().map(|one| one.srtt_max_us).max().unwrap_or(0);
    FlowRecord {
        rtt_min_ns: least.map_or(0, Time::as_nanos),
        rtt_max_ns: u64::from(most_us) * 1000,
        timeouts: known.iter().map(|one| u64::from(one.info.timeouts)).sum(),
        ..row
    }
}

/// Makes the rows of connections: those of the flows' ports, from the end that sends the data. Bytes
/// and times are those of the observer, everything else is the kernel's.
fn connections(
    scenario: &Scenario,
    programs: &Programs<'_>,
    observed: &Observed,
    sockets: &Sockets,
) -> Vec<ConnectionRecord> {
    let by_port = |port: u16| {
        let flow = programs.flows.iter().find(|flow| flow.port == port);
        flow.map(|flow| flow.index)
    };
    let rows = rows_of(observed, |five| by_port(five.source.port()).is_some());
    let row = |(five, row): (FiveTuple, ConnectionRecord)| {
        let index = by_port(five.source.port())?;
        let known = sockets.known(five.source, five.destination);
        let record = known
            .as_ref()
            .map(|known| knee_live::connection_record(&known.info))
            .unwrap_or_default();
        let cc = known.map(|known| known.controller).unwrap_or_default();
        Some(ConnectionRecord {
            connection: row.connection,
            flow: Some(index as u32),
            workload: scenario.flows[index].workload.name().into(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            acked_bytes: row.acked_bytes,
            received_bytes: row.received_bytes,
            sent_bytes: row.sent_bytes,
            retransmitted_bytes: row.retransmitted_bytes,
            sent_packets: row.sent_packets,
            marked_packets: row.marked_packets,
            local_port: row.local_port,
            remote_port: row.remote_port,
            cc: cc.into(),
            cc_source: ControllerSource::Application,
            // A program's own small buffer is no fault of the host.
            send_buffer_limited_ns: None,
            ..record
        })
    };
    rows.into_iter().filter_map(row).collect()
}

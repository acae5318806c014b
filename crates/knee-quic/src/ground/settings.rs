//! Settings of a flow over QUIC from a scenario, and what is refused. Every key is named: a new one
//! does not compile until it is handled here.

use super::QuicError;
use crate::{CongestionSettings, ConnectionSettings, HostSettings, check_controller};
use knee_bundle::{Limits, PATHS_MAX};
use knee_cc::Selection;
use knee_scenario::{Flow, Multipath, Path, Scenario};
use knee_testbed::PathSettings;
use knee_transport::{Config, Pacing, ReceiveWindow};
use knee_units::{Rate, Time};

/// Headers of IPv4 and UDP.
const AROUND: u32 = 28;
/// Minimum UDP payload of a QUIC packet (RFC 9000, section 14).
const PACKET_MIN: u32 = 1200;
/// Maximum number of flows, which have a port each.
const FLOWS_MAX: usize = 10_000;
/// Default window; more than any path here holds.
const WINDOW: u64 = 64 << 20;
/// Lateness of a thread that does not make a path count as silent.
const LATENESS: Time = Time::from_millis(5);

/// Settings of a flow.
#[derive(Clone, Debug)]
pub struct FlowSettings {
    pub label: String,
    pub is_multipath: bool,
    /// Settings of the opening end; only `is_server` differs at the other one.
    pub host: HostSettings,
    /// Cost of each of its paths.
    pub costs: Vec<u8>,
}

/// Returns the settings of the hosts, by path.
pub fn paths(scenario: &Scenario) -> Vec<PathSettings> {
    let mtu = |path: usize| {
        let flows = scenario.flows.iter().filter(|flow| flow.paths.contains(&path));
        flows.map(|flow| flow.transport.mss + flow.transport.header).max().unwrap_or(1500)
    };
    (0..scenario.paths.len()).map(|path| PathSettings { mtu: mtu(path), v6: false }).collect()
}

/// Returns the settings of each flow.
pub fn flows(scenario: &Scenario) -> Result<Vec<FlowSettings>, QuicError> {
    if scenario.flows.len() > FLOWS_MAX {
        return Err(QuicError::Unsupported {
            place: "scenario".to_owned(),
            problem: format!("it has {} flows", scenario.flows.len()),
            advice: format!("write at most {FLOWS_MAX}, each needs a port"),
        });
    }
    scenario.flows.iter().map(|flow| flow_settings(scenario, flow)).collect()
}

fn flow_settings(scenario: &Scenario, flow: &Flow) -> Result<FlowSettings, QuicError> {
    let Flow {
        name,
        index,
        paths,
        multipath,
        controller,
        transport,
        // Checked with the transport, whose key it is.
        send_jitter: _,
        // Handled with the applications, in `flow`.
        workload: _,
        program,
        after,
        start: _,
        stop: _,
    } = flow;
    if program.is_some() {
        let problem = "it runs on the ground programs alone".to_owned();
        let advice = "add --on programs, or write workload in its place".to_owned();
        return Err(unsupported(flow, "program", problem, advice));
    }
    if after.is_some() {
        let problem = "a flow does not know when another's transfer is done".to_owned();
        return Err(unsupported(flow, "after", problem, "remove it, or run on sim".to_owned()));
    }
    check_transport(flow, transport)?;
    check_controller(&flow.controller).map_err(|problem| {
        let advice = "choose one that does not (knee list), or run on sim".to_owned();
        unsupported(flow, "cc", problem, advice)
    })?;
    if paths.len() > PATHS_MAX {
        let problem = format!("it has {} paths", paths.len());
        return Err(unsupported(
            flow,
            "paths",
            problem,
            format!("name at most {PATHS_MAX}, or run on sim"),
        ));
    }
    paths.iter().try_for_each(|path| check_path(flow, &scenario.paths[*path]))?;
    let (scheduler, reinjection, costs) = match multipath {
        Some(Multipath { scheduler, reinjection, backup }) => {
            let cost = |number| u8::from(backup.contains(&number));
            let costs = (0..paths.len()).map(cost).collect();
            (scheduler.clone(), *reinjection, costs)
        }
        None => (Selection::named("minrtt"), false, vec![0; paths.len()]),
    };
    let window = match transport.receive_window {
        ReceiveWindow::Fixed(bytes) => bytes,
        ReceiveWindow::Unlimited | ReceiveWindow::Auto { .. } => WINDOW,
    };
    let rate = |path: &usize| {
        let rate = scenario.path_rate(*path).unwrap_or(Rate::from_bits_per_second(1_000_000_000));
        rate.bytes_in(Time::from_secs(1))
    };
    let packet = transport.mss + transport.header - AROUND;
    Ok(FlowSettings {
        label: format!("{name}[{index}]"),
        is_multipath: multipath.is_some(),
        host: HostSettings {
            is_server: false,
            paths: vec![
                ConnectionSettings::lasting(packet.min(u32::from(u16::MAX)) as u16);
                paths.len()
            ],
            eager: true,
            linger: Time::MAX,
            bundles_of_a_key: usize::MAX,
            congestion: CongestionSettings {
                controller: controller.clone(),
                recovery: transport.recovery,
                paced: match transport.pacing {
                    Pacing::On => Some(true),
                    Pacing::Off => Some(false),
                    Pacing::Auto => None,
                },
                initial_window: transport.initial_window,
                max_burst: transport.max_burst,
            },
            scheduler,
            limits: Limits { window, stream_window: window, streams: 4 },
            // One second of its paths' rates may wait to be sent.
            buffer: paths.iter().map(rate).sum::<u64>().clamp(1 << 20, 32 << 20),
            reinjection,
            lateness: LATENESS,
        },
        costs,
    })
}

fn check_path(flow: &Flow, path: &Path) -> Result<(), QuicError> {
    // Both directions are the emulator's.
    let Path { name: _, forward: _, reverse: _, absent, tunnel } = path;
    if !absent.is_empty() {
        let problem = "over QUIC a path cannot be absent yet".to_owned();
        let advice = "write down = … at a link, or run on sim".to_owned();
        return Err(unsupported(flow, "path", problem, advice));
    }
    if tunnel.is_some() {
        let problem = "over QUIC a queue sees each flow, not a tunnel".to_owned();
        let advice = "leave tunnel out at the path, or run on sim".to_owned();
        return Err(unsupported(flow, "path", problem, advice));
    }
    Ok(())
}

fn check_transport(flow: &Flow, transport: &Config) -> Result<(), QuicError> {
    let default = Config::default();
    let Config {
        mss,
        header,
        // These six are handled in `flow_settings`.
        initial_window: _,
        receive_window: _,
        pacing: _,
        recovery: _,
        max_burst: _,
        acks,
        ack_every,
        ack_bytes,
        ack_frequency,
        ack_delay,
        quick_acks,
        lies,
        ecn,
        sampler,
        min_rto,
    } = *transport;
    let refuse = |key: &str, advice: &str| {
        let problem = "QUIC does not support this setting".to_owned();
        Err(unsupported(flow, key, problem, format!("{advice}, or run on sim")))
    };
    if mss + header < PACKET_MIN + AROUND {
        return refuse("mss", "write mss and header of at least 1228 B together");
    }
    if ecn {
        return refuse("ecn", "remove it: the QUIC library's own marks cannot be turned off");
    }
    // Those of the library are QUIC's, whether the scenario says so or nothing.
    let acks_differ = ack_every != default.ack_every
        || ack_bytes.is_some()
        || ack_frequency.is_some()
        || ack_delay != acks.delay()
        || quick_acks != acks.quick();
    if acks_differ {
        return refuse(
            "acks",
            "remove all settings of ACKs but acks = \"quic\": every second packet, 25 ms",
        );
    }
    if !lies.is_honest() {
        return refuse("receiver", "remove it: QUIC's receiver is honest");
    }
    if flow.send_jitter > Time::ZERO {
        return refuse("send_jitter", "remove it: a real host has its own");
    }
    if sampler != default.sampler {
        return refuse("sampler", "leave it at linux");
    }
    if min_rto != default.min_rto {
        return refuse("min_rto", "remove it: QUIC has probe timeouts");
    }
    Ok(())
}

fn unsupported(flow: &Flow, key: &str, problem: String, advice: String) -> QuicError {
    QuicError::Unsupported { place: format!("flow \"{}\", {key}", flow.name), problem, advice }
}

#[cfg(test)]
mod tests;

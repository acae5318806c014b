//! TCP and MPTCP settings of the hosts of a run.

use crate::KernelError;
use crate::settings::Settings;
use knee_emulator::Tun;
use knee_host::mptcp::{self, Announced};
use knee_host::{HostError, set_sysctl, sysctl};
use knee_testbed::{End, Hosts, PathSettings, address};

/// Maximum size of socket buffers, which bound the windows.
const SOCKET_BYTES_MAX: u64 = 1 << 29;

/// Retransmissions of a SYN with MPTCP's option, after which it falls back to TCP; never from 128 on.
/// Kernels before 6.14 lack the setting.
const MPTCP_SYNS: &str = "net.mptcp.syn_retrans_before_tcp_fallback";

/// Sets up both hosts and the devices between which the emulator runs.
pub fn create(settings: &Settings) -> Result<(Hosts, Vec<Tun>), KernelError> {
    create_with(settings, &settings.paths, || Ok(()))
}

/// Does the same with other devices, and what `prepare` does in each host before.
pub fn create_with(
    settings: &Settings,
    paths: &[PathSettings],
    prepare: impl Fn() -> Result<(), HostError> + Sync,
) -> Result<(Hosts, Vec<Tun>), KernelError> {
    let (hosts, devices) = Hosts::create(paths, |_| {
        prepare()?;
        // Programs alone find the kernel's own defaults.
        if settings.flows.is_empty() { Ok(()) } else { set_sysctls(settings) }
    })?;
    hosts.sender.within(|| set_up_multipath(settings, End::Sender))?;
    hosts.receiver.within(|| set_up_multipath(settings, End::Receiver))?;
    Ok((hosts, devices))
}

/// All of these belong to the namespace.
fn set_sysctls(settings: &Settings) -> Result<(), HostError> {
    let switch = |on: bool| if on { "1" } else { "0" };
    set_sysctl("net.ipv4.tcp_rmem", &format!("4096 131072 {SOCKET_BYTES_MAX}"))?;
    set_sysctl("net.ipv4.tcp_wmem", &format!("4096 16384 {SOCKET_BYTES_MAX}"))?;
    // Metrics learned by one connection must not help the next.
    set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    // A mix may open a thousand connections per second, each of which keeps its port for a minute
    // unless a later timestamp shows what belongs to the next one (RFC 6191).
    set_sysctl("net.ipv4.ip_local_port_range", "1024 65535")?;
    set_sysctl("net.ipv4.tcp_tw_reuse", "1")?;
    // A link may be down while a connection begins: it waits, with MPTCP if it has begun so.
    set_sysctl("net.ipv4.tcp_syn_retries", "127")?;
    if sysctl(MPTCP_SYNS).is_ok() {
        set_sysctl(MPTCP_SYNS, "128")?;
    }
    set_sysctl("net.ipv4.tcp_timestamps", switch(settings.timestamps))?;
    set_sysctl("net.ipv4.tcp_ecn", switch(settings.ecn))
}

/// Permits subflows if a flow is over MPTCP, and announces the addresses of its other paths, which
/// the devices must already have.
fn set_up_multipath(settings: &Settings, end: End) -> Result<(), HostError> {
    let Some(flow) = settings.flows.iter().find(|flow| flow.is_multipath()) else {
        return Ok(());
    };
    mptcp::allow_subflows()?;
    if end == End::Sender {
        return Ok(());
    }
    let joined = flow.multipath[1..].iter().map(|path| Announced {
        address: address(*path, end, flow.family),
        backup: flow.backup.contains(path),
    });
    let joined: Vec<Announced> = joined.collect();
    mptcp::announce(&joined)
}

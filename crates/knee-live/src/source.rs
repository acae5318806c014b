//! Where reports of ended connections come from.

use crate::LiveError;
use knee_host::{ClosedSockets, Heard, HostError, TcpSocket};
use std::time::Duration;

/// Source of the reports of ended connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// sock_diag, which needs no privilege.
    #[default]
    SockDiag,
    /// BPF programs, which need privileges and the feature `bpf`. Their reports have the controller
    /// and the start of a connection.
    Programs,
}

/// Pause between two readings, to batch reports; the smallest permitted buffer, 208 KiB, holds
/// three times as many at 20,000 reports per second.
const PAUSE: Duration = Duration::from_millis(5);
/// As long for the buffer of the programs, 16 MiB, which holds 50,000 reports.
#[cfg(feature = "bpf")]
const PAUSE_OF_PROGRAMS: Duration = Duration::from_millis(100);
/// Maximum number of reports per reading.
const BATCH: u64 = 4096;

/// An open source.
pub(crate) enum Source {
    SockDiag(ClosedSockets),
    #[cfg(feature = "bpf")]
    Programs(Box<knee_host::bpf::EndedConnections>),
}

impl Source {
    pub fn open(reports: Reports) -> Result<Source, LiveError> {
        match reports {
            Reports::SockDiag => Ok(Source::SockDiag(ClosedSockets::listen()?)),
            Reports::Programs => Source::programs(),
        }
    }

    #[cfg(feature = "bpf")]
    fn programs() -> Result<Source, LiveError> {
        let cgroup = knee_host::cgroup_root().ok_or_else(|| LiveError::Programs {
            problem: "this host lacks a file system of control groups, version 2".to_string(),
            advice: "mount it: mount -t cgroup2 none /sys/fs/cgroup; or omit --bpf".to_string(),
        })?;
        let attached = knee_host::bpf::EndedConnections::attach(&cgroup);
        let wrong = |error: knee_host::bpf::BpfError| LiveError::Programs {
            problem: error.problem(),
            advice: format!("{}; or omit --bpf", error.advice()),
        };
        Ok(Source::Programs(Box::new(attached.map_err(wrong)?)))
    }

    #[cfg(not(feature = "bpf"))]
    fn programs() -> Result<Source, LiveError> {
        Err(LiveError::Programs {
            problem: "this build of Knee has no BPF programs".to_string(),
            advice:
                "install one with cargo install --path crates/knee --features bpf, or omit --bpf"
                    .to_string(),
        })
    }

    /// Whether reports lack the controller and the start, which lists of open connections tell then.
    pub fn lacks_starts(&self) -> bool {
        matches!(self, Source::SockDiag(_))
    }

    /// Number of connections that were open at the start and whose end is not reported.
    pub fn unreported(&self) -> u64 {
        match self {
            Source::SockDiag(_) => 0,
            #[cfg(feature = "bpf")]
            Source::Programs(programs) => programs.not_asked(),
        }
    }

    pub fn buffer_bytes(&self) -> Result<usize, LiveError> {
        match self {
            Source::SockDiag(closed) => {
                let call = |error| HostError::call("ask for the size of a buffer", error);
                Ok(closed.buffer_bytes().map_err(call)?)
            }
            #[cfg(feature = "bpf")]
            Source::Programs(programs) => Ok(programs.buffer_bytes()),
        }
    }

    /// Waits up to `patience` for a report, then passes it and others to `each`. Returns what was
    /// read, and how long to pause before the next reading.
    pub fn hear(
        &mut self,
        patience: Duration,
        each: impl FnMut(TcpSocket<'_>),
    ) -> Result<(Heard, Duration), LiveError> {
        let call = |error| HostError::call("read the kernel's reports of connections", error);
        match self {
            Source::SockDiag(closed) => {
                let heard = closed.hear(patience, BATCH, each).map_err(call)?;
                let is_batch = heard.reports > 0 && heard.reports < BATCH;
                Ok((heard, if is_batch { PAUSE } else { Duration::ZERO }))
            }
            #[cfg(feature = "bpf")]
            Source::Programs(programs) => {
                let heard = programs.hear(patience, each).map_err(call)?;
                let pause = if heard.reports > 0 { PAUSE_OF_PROGRAMS } else { Duration::ZERO };
                Ok((heard, pause))
            }
        }
    }
}

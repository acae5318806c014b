//! The sending host: opens every flow at its time, keeps its socket filled,
//! and samples all of them.

use super::sampling::Observed;
use super::subflows::Subflows;
use super::{COMPLETION_PERIOD, GIVE_BYTES, PORT, SLEEP_MAX_MS, Shared, at_port, tcp_socket};
use crate::KernelError;
use crate::hosts::{End, address};
use crate::settings::{FlowSettings, Settings};
use knee_emulator::{Clock, timespec};
use knee_host::{HostError, TcpInfo, mptcp, set_option};
use knee_record::{FlowRecord, FlowSample, PathRecord};
use knee_scenario::{Scenario, Workload};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, Shutdown, connect, send, setsockopt, shutdown, sockopt};
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// All sending sockets.
pub struct Sender<'a> {
    scenario: &'a Scenario,
    settings: &'a Settings,
    shared: &'a Shared,
    clock: Clock,
    flows: Vec<Flow>,
    payload: Vec<u8>,
    samples: Vec<FlowSample>,
    path_samples: Vec<FlowSample>,
}

/// What the sending host has to tell in the end.
pub struct Sent {
    pub samples: Vec<FlowSample>,
    pub flows: Vec<FlowRecord>,
    pub path_samples: Vec<FlowSample>,
    pub paths: Vec<PathRecord>,
}

#[derive(Default)]
struct Flow {
    socket: Option<OwnedFd>,
    given_bytes: u64,
    /// Nothing more will be given.
    closed: bool,
    completed: Option<Time>,
    observed: Observed,
    /// Of a flow over MPTCP.
    paths: Subflows,
}

impl<'a> Sender<'a> {
    /// For the namespace of the calling thread.
    pub fn new(
        scenario: &'a Scenario,
        settings: &'a Settings,
        shared: &'a Shared,
        clock: Clock,
    ) -> Sender<'a> {
        Sender {
            scenario,
            settings,
            shared,
            clock,
            flows: settings.flows.iter().map(|_| Flow::default()).collect(),
            payload: vec![0; GIVE_BYTES],
            samples: Vec::new(),
            path_samples: Vec::new(),
        }
    }

    /// Sends to the end of the run, or until told to stop.
    pub fn run(mut self) -> Result<Sent, KernelError> {
        let interval = self.scenario.sample_interval;
        let mut next_sample = Time::ZERO;
        let mut now = self.clock.now();
        while now < self.scenario.duration && !self.shared.stop.load(Ordering::Relaxed) {
            self.start_and_stop(now)?;
            self.look_for_completion(now)?;
            if next_sample <= now {
                self.sample(now)?;
                while next_sample <= now {
                    next_sample += interval;
                }
            }
            for flow in self.wait(now, next_sample)? {
                self.give(flow)?;
            }
            now = self.clock.now();
        }
        let end = now.min(self.scenario.duration);
        self.finish(end)
    }

    fn finish(mut self, end: Time) -> Result<Sent, KernelError> {
        self.sample(end)?;
        let streams = self.settings.flows.iter().map(FlowSettings::is_stream);
        let flows = self.flows.iter().enumerate().zip(streams).filter(|(_, stream)| *stream);
        let flows = flows.map(|((index, flow), _)| {
            let delivered = self.shared.delivered[index].load(Ordering::Relaxed);
            match self.settings.flows[index].is_multipath() {
                false => flow.observed.record(self.scenario, index, flow.completed, delivered, end),
                true => flow.paths.record(self.scenario, index, flow.completed, delivered, end),
            }
        });
        let paths = self.flows.iter().enumerate();
        let paths = paths.flat_map(|(index, flow)| flow.paths.path_records(self.scenario, index));
        Ok(Sent {
            flows: flows.collect(),
            paths: paths.collect(),
            samples: self.samples,
            path_samples: self.path_samples,
        })
    }

    fn start_and_stop(&mut self, now: Time) -> Result<(), KernelError> {
        for (index, plan) in self.settings.flows.iter().enumerate() {
            let flow = &mut self.flows[index];
            if !plan.is_stream() {
                continue;
            }
            if flow.socket.is_none() && plan.start <= now {
                flow.socket = Some(open(index, plan)?);
            }
            if !flow.closed && plan.stop.is_some_and(|stop| stop <= now) {
                flow.close();
            }
        }
        Ok(())
    }

    /// Notes when the last byte of a file was acknowledged.
    fn look_for_completion(&mut self, now: Time) -> Result<(), KernelError> {
        for (flow, plan) in self.flows.iter_mut().zip(&self.settings.flows) {
            let Some(socket) = flow.socket.as_ref().filter(|_| flow.awaits_completion(plan)) else {
                continue;
            };
            let acked = match plan.is_multipath() {
                // The SYN counts as a byte until the handshake is over.
                false => TcpInfo::of(socket).map(|info| {
                    flow.observed.note(&info);
                    info.acked_bytes
                }),
                true => mptcp::acknowledged_bytes(socket),
            };
            if acked.map_err(|source| broken(plan, source))? >= flow.given_bytes {
                flow.completed = Some(now);
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Time) -> Result<(), KernelError> {
        for (index, plan) in self.settings.flows.iter().enumerate() {
            let flow = &mut self.flows[index];
            let over = flow.completed.is_some_and(|at| at + self.scenario.sample_interval <= now);
            let Some(socket) = flow.socket.as_ref().filter(|_| !over) else { continue };
            // The thread may have been kept from running since `now`.
            let at = self.clock.now().min(self.scenario.duration);
            let delivered = self.shared.delivered[index].load(Ordering::Relaxed);
            if plan.is_multipath() {
                let rows = flow.paths.sample(socket, index, plan, at, delivered);
                let (row, of_paths) = rows.map_err(|source| broken(plan, source))?;
                self.samples.push(row);
                self.path_samples.extend(of_paths);
                continue;
            }
            let row = flow.observed.sample(socket, index, plan, at, delivered);
            self.samples.push(row.map_err(|source| broken(plan, source))?);
        }
        Ok(())
    }

    /// Sleeps until something is to do; the flows whose sockets have room.
    fn wait(&self, now: Time, next_sample: Time) -> Result<Vec<usize>, KernelError> {
        let giving: Vec<usize> =
            (0..self.flows.len()).filter(|index| self.flows[*index].gives()).collect();
        let mut polled: Vec<PollFd<'_>> = giving
            .iter()
            .filter_map(|index| self.flows[*index].socket.as_ref())
            .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLOUT))
            .collect();
        let span = self.next_event(now, next_sample).saturating_sub(now);
        match ppoll(&mut polled, Some(timespec(span)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(KernelError::call("wait for sockets", error)),
        }
        let ready = giving.iter().zip(&polled).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|(index, _)| *index).collect())
    }

    fn next_event(&self, now: Time, next_sample: Time) -> Time {
        let latest = self.scenario.duration.min(now + Time::from_millis(SLEEP_MAX_MS));
        let mut next = next_sample.min(latest);
        for (flow, plan) in self.flows.iter().zip(&self.settings.flows) {
            if !plan.is_stream() {
                continue;
            }
            if flow.socket.is_none() {
                next = next.min(plan.start);
            }
            if let Some(stop) = plan.stop.filter(|_| !flow.closed) {
                next = next.min(stop);
            }
            if flow.awaits_completion(plan) {
                next = next.min(now + COMPLETION_PERIOD);
            }
        }
        next
    }

    /// Fills one socket.
    fn give(&mut self, index: usize) -> Result<(), KernelError> {
        let (flow, plan) = (&mut self.flows[index], &self.settings.flows[index]);
        let Some(socket) = &flow.socket else { return Ok(()) };
        let left = match plan.workload {
            Workload::File(bytes) => bytes - flow.given_bytes,
            _ => u64::MAX,
        };
        let part = &self.payload[..left.min(GIVE_BYTES as u64) as usize];
        match send(socket.as_raw_fd(), part, MsgFlags::MSG_NOSIGNAL) {
            Ok(len) => flow.given_bytes += len as u64,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            Err(error) => return Err(broken(plan, error.into())),
        }
        if plan.workload == Workload::File(flow.given_bytes) {
            flow.close();
        }
        Ok(())
    }
}

impl Flow {
    /// Ends the stream behind what was given.
    fn close(&mut self) {
        self.closed = true;
        if let Some(socket) = &self.socket {
            // Not connected yet: then there is nothing to end.
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Write);
        }
    }

    fn gives(&self) -> bool {
        self.socket.is_some() && !self.closed
    }

    fn awaits_completion(&self, plan: &FlowSettings) -> bool {
        let all_given = plan.workload == Workload::File(self.given_bytes);
        self.closed && self.completed.is_none() && all_given
    }
}

/// Opens a flow. The handshake goes its way over the path by itself.
fn open(index: usize, plan: &FlowSettings) -> Result<OwnedFd, KernelError> {
    let to = address(plan.path, End::Receiver, plan.family);
    let multipath = plan.is_multipath();
    let socket = if multipath { mptcp::socket(to)? } else { tcp_socket(to)? };
    sending_options(&socket, plan)?;
    connect_to(&socket, plan, to, PORT + index as u16)?;
    Ok(socket)
}

/// What the sending end of a flow is set to; a listener hands it on to what
/// it accepts.
pub fn sending_options(socket: &OwnedFd, plan: &FlowSettings) -> Result<(), KernelError> {
    setsockopt(socket, sockopt::TcpCongestion, &OsString::from(&plan.controller)).map_err(
        |source| {
            let what = format!("choose the controller \"{}\"", plan.controller);
            HostError::refused(what, source, "load its module as root")
        },
    )?;
    let mut options = vec![
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG, plan.max_segment),
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, plan.ready_bytes),
    ];
    if plan.paced {
        // Any bound makes TCP pace, this one never binds: 34 Gbit/s.
        options.push((libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u32::MAX - 1));
    }
    for (level, name, value) in options {
        set_option(socket, level, name, value)
            .map_err(|source| KernelError::call("set an option of a TCP socket", source))?;
    }
    Ok(())
}

/// Begins the handshake.
pub fn connect_to(
    socket: &OwnedFd,
    plan: &FlowSettings,
    to: IpAddr,
    port: u16,
) -> Result<(), KernelError> {
    match connect(socket.as_raw_fd(), &at_port(to, port)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
        Err(error) => Err(broken(plan, error.into())),
    }
}

pub fn broken(plan: &FlowSettings, source: io::Error) -> KernelError {
    KernelError::Flow { flow: plan.label.clone(), source }
}

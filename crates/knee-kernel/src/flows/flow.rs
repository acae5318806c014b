//! An application, its listener and its connections.

use super::closing::{self, Ends};
use super::exchange::Exchange;
use super::sampling::Observed;
use super::sockets::{broken, connect_to, listen_at, local_port, open, set_up};
use super::subflows::Subflows;
use super::{COMPLETION_PERIOD, PORT};
use crate::settings::FlowSettings;
use crate::{KernelError, Remote};
use knee_host::{Namespace, mptcp};
use knee_record::{ConnectionRecord, FlowRecord, FlowSample, ObjectRecord};
use knee_scenario::{Scenario, application_stream};
use knee_testbed::{End, Hosts, address};
use knee_units::Time;
use knee_workload::{Action, Application};
use nix::poll::{PollFd, PollFlags};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

/// Something that may be ready: a listener, or an end of a connection.
#[derive(Clone, Copy)]
pub enum Source {
    Listener,
    Sending(u32),
    Receiving(u32),
}

/// Where the receiving ends of flows are.
#[derive(Clone, Copy)]
pub enum Receivers<'a> {
    /// On the other host of the testbed, driven by the same thread.
    Testbed(&'a Hosts),
    /// On another machine.
    Remote(&'a Remote),
}

/// A running application.
pub struct RunningFlow<'a> {
    pub index: usize,
    pub plan: &'a FlowSettings,
    pub application: Box<dyn Application>,
    /// Listener on the testbed.
    pub listener: Option<TcpListener>,
    /// Whether the receiving end opens connections and sends requests.
    pub fetches: bool,
    /// Whether connections are forgotten as soon as they end, and recorded as transfers.
    pub transient: bool,
    pub live: Vec<Exchange>,
    /// Counts of forgotten connections.
    pub gone: Observed,
    /// Paths of the connection, for a flow over MPTCP.
    pub paths: Subflows,
    pub delivered: u64,
    pub started: bool,
    pub stopped: bool,
    pub completed: Option<Time>,
}

impl<'a> RunningFlow<'a> {
    pub fn new(
        scenario: &Scenario,
        receivers: Receivers<'_>,
        plan: &'a FlowSettings,
    ) -> Result<RunningFlow<'a>, KernelError> {
        let index = plan.index;
        let rng = application_stream(scenario.seed, &scenario.flows[index]);
        let fetches = !plan.workload.properties().pushes;
        let listen = |hosts| {
            let (host, end) = ends(hosts, !fetches);
            let at = address(plan.path, end, plan.family);
            host.within(|| {
                let socket = open(plan, at)?;
                set_up(&socket, plan, fetches)?;
                listen_at(socket, plan, at, PORT + index as u16)
            })
        };
        let listener = match receivers {
            Receivers::Testbed(hosts) => Some(listen(hosts)?),
            Receivers::Remote(_) => None,
        };
        Ok(RunningFlow {
            index,
            plan,
            application: knee_workload::build(&plan.workload, rng),
            listener,
            fetches,
            transient: plan.workload.properties().transient,
            live: Vec::new(),
            gone: Observed::default(),
            paths: Subflows::default(),
            delivered: 0,
            started: false,
            stopped: false,
            completed: None,
        })
    }

    pub fn carry_out(
        &mut self,
        action: Action,
        receivers: Receivers<'_>,
        now: Time,
    ) -> Result<(), KernelError> {
        match action {
            Action::Open { connection } => {
                let exchange = self.open(connection, receivers, now)?;
                self.live.push(exchange);
            }
            Action::Push { connection, bytes } => self.exchange(connection).push(bytes),
            Action::Request { connection, bytes } => self.exchange(connection).request(bytes),
            Action::Close { connection } => self.exchange(connection).close(),
        }
        Ok(())
    }

    #[expect(clippy::expect_used, reason = "a defect of knee-workload")]
    fn exchange(&mut self, number: u32) -> &mut Exchange {
        let found = self.live.iter_mut().rev().find(|exchange| exchange.number == number);
        found.expect("an application speaks only of connections that it opened")
    }

    /// Opens a connection, without waiting for the handshake.
    fn open(
        &self,
        number: u32,
        receivers: Receivers<'_>,
        now: Time,
    ) -> Result<Exchange, KernelError> {
        let plan = self.plan;
        let (to, greeting) = match receivers {
            Receivers::Testbed(hosts) => {
                let (host, _) = ends(hosts, self.fetches);
                let (_, far) = ends(hosts, !self.fetches);
                // The thread changes namespaces; a socket stays in the one in which it was created.
                host.enter()?;
                let port = PORT + self.index as u16;
                (SocketAddr::new(address(plan.path, far, plan.family), port), None)
            }
            Receivers::Remote(remote) => {
                let to = remote.address(plan.family);
                let missing = || broken(plan, io::ErrorKind::AddrNotAvailable.into());
                (to.ok_or_else(missing)?, Some(remote.greeting.clone()))
            }
        };
        let opener = open(plan, to.ip())?;
        set_up(&opener, plan, !self.fetches)?;
        connect_to(&opener, plan, to)?;
        let port = local_port(&opener).map_err(|source| broken(plan, source))?;
        Ok(match greeting {
            None => Exchange::new(number, now, opener, port, self.fetches),
            Some(greeting) => Exchange::remote(number, now, opener, port, to.port(), greeting),
        })
    }

    pub fn accept(&mut self) -> Result<(), KernelError> {
        let call = |source| KernelError::call("accept a connection", source);
        let Some(listener) = &self.listener else { return Ok(()) };
        loop {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(call(error)),
            };
            stream.set_nonblocking(true).map_err(call)?;
            let waiting = self.live.iter_mut().find(|exchange| exchange.port == from.port());
            if let Some(exchange) = waiting {
                exchange.accepted = Some(OwnedFd::from(stream));
            }
        }
    }

    pub fn watch<'s>(&'s self, mut add: impl FnMut(Source, PollFd<'s>)) {
        if let Some(listener) = &self.listener
            && self.live.iter().any(|exchange| exchange.accepted.is_none())
        {
            add(Source::Listener, PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        for exchange in &self.live {
            let number = exchange.number;
            let ends = [
                (Source::Sending(number), exchange.sending(), exchange.sending_events()),
                (Source::Receiving(number), exchange.receiving(), exchange.receiving_events()),
            ];
            for (source, socket, events) in ends {
                if let Some(socket) = socket.filter(|_| !events.is_empty()) {
                    add(source, PollFd::new(socket.as_fd(), events));
                }
            }
        }
    }

    pub fn next_event(&self, now: Time) -> Time {
        let plan = self.plan;
        if !self.started {
            return plan.start;
        }
        let stop = plan.stop.filter(|_| !self.stopped).unwrap_or(Time::MAX);
        let timer = plan.start.saturating_add(self.application.timer());
        let ending = self.live.iter().any(Exchange::awaits_end);
        let look = if ending { now + COMPLETION_PERIOD } else { Time::MAX };
        stop.min(timer).min(look)
    }

    /// Makes the row of the flow: counters of all connections, and rates, RTT and phase of the
    /// connection that began last. Over MPTCP also makes a row for each path.
    pub fn sample(&mut self, now: Time) -> io::Result<(FlowSample, Vec<FlowSample>)> {
        if self.plan.is_multipath()
            && let Some(exchange) = self.live.first()
        {
            let (index, plan) = (self.index, self.plan);
            return self.paths.sample(&exchange.opener, index, plan, now, self.delivered);
        }
        let gone = &self.gone.info;
        let mut row = FlowSample {
            flow: self.index as u32,
            path: self.plan.path as u16,
            time_ns: now.as_nanos(),
            sent_bytes: gone.sent_bytes,
            retransmitted_bytes: gone.retransmitted_bytes,
            sent_packets: u64::from(gone.sent_packets),
            lost_bytes: gone.retransmitted_bytes,
            phase: "idle",
            ..FlowSample::default()
        };
        for exchange in &mut self.live {
            let socket =
                if exchange.fetches { exchange.accepted.as_ref() } else { Some(&exchange.opener) };
            let Some(socket) = socket else { continue };
            row = row.with(exchange.observed.sample(socket, self.index, self.plan, now, 0)?);
            self.delivered += exchange.newly_acknowledged();
        }
        row.delivered_bytes = self.delivered;
        Ok((row, Vec::new()))
    }

    /// Makes the row of a connection that has ended, or is cut off at `end`.
    pub fn connection(
        &self,
        scenario: &Scenario,
        exchange: &Exchange,
        end: Time,
    ) -> ConnectionRecord {
        let listening = exchange.remote_port().unwrap_or(PORT + self.index as u16);
        // One that a stop cut off has no completion time.
        let size = Some(exchange.size()).filter(|_| !self.endless());
        let (local_port, remote_port) =
            if exchange.fetches { (listening, exchange.port) } else { (exchange.port, listening) };
        let ends = Ends {
            number: exchange.number,
            local_port,
            remote_port,
            started: exchange.started,
            completed: exchange.completed.filter(|_| size.is_none_or(|all| all == exchange.asked)),
            end: exchange.completed.unwrap_or(end),
            size,
            given: exchange.given,
            delivered: exchange.delivered,
            overhead: exchange.overhead(),
        };
        if !self.plan.is_multipath() {
            return closing::connection(scenario, self.index, &ends, &exchange.observed);
        }
        let acked = mptcp::acknowledged_bytes(&exchange.opener).ok();
        let acked = acked.map(|bytes| bytes.min(ends.given));
        closing::multipath(scenario, self.index, &ends, acked, &self.paths.total())
    }

    /// Returns whether its one connection carries bytes without end, although a stop may end it.
    fn endless(&self) -> bool {
        let properties = self.plan.workload.properties();
        properties.single && !properties.ends
    }

    /// Makes the record of the flow.
    pub fn record(&self, scenario: &Scenario, end: Time) -> FlowRecord {
        match self.plan.is_multipath() {
            true => self.paths.record(scenario, self.index, self.completed, self.delivered, end),
            false => self.gone.record(scenario, self.index, self.completed, self.delivered, end),
        }
    }
}

/// Returns whether another connection may be accepted at once.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// Returns the host of the receiving or the sending end.
fn ends(hosts: &Hosts, receiving: bool) -> (&Namespace, End) {
    if receiving { (&hosts.receiver, End::Receiver) } else { (&hosts.sender, End::Sender) }
}

pub fn objects(flow: &RunningFlow<'_>) -> Vec<ObjectRecord> {
    let objects = flow.application.objects().iter();
    objects.map(|object| ObjectRecord::of(flow.index, flow.plan.start, object)).collect()
}

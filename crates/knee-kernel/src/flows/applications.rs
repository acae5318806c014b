//! Applications over real sockets: one thread drives all of them and both ends of their
//! connections, so that an application learns immediately what has arrived.

use super::exchange::Exchange;
use super::flow::{Receivers, RunningFlow, Source, objects};
use super::sockets::broken;
use super::{GIVE_BYTES, SLEEP_MAX_MS, TAKE_BYTES};
use crate::KernelError;
use crate::settings::Settings;
use knee_emulator::{Clock, timespec};
use knee_record::{Records, Row, RowSender};
use knee_scenario::Scenario;
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::ppoll;
use std::sync::atomic::{AtomicBool, Ordering};

/// All flows.
pub struct Applications<'a> {
    scenario: &'a Scenario,
    receivers: Receivers<'a>,
    /// When set, all flows end.
    stop: &'a AtomicBool,
    clock: Clock,
    flows: Vec<RunningFlow<'a>>,
    payload: Vec<u8>,
    buffer: Vec<u8>,
    /// Where rows go as they are made.
    rows: RowSender,
}

/// Makes all flows, with a listener on the testbed for each, at the end that does not open its
/// connections.
pub fn listen<'a>(
    scenario: &Scenario,
    settings: &'a Settings,
    receivers: Receivers<'_>,
) -> Result<Vec<RunningFlow<'a>>, KernelError> {
    settings.flows.iter().map(|plan| RunningFlow::new(scenario, receivers, plan)).collect()
}

impl<'a> Applications<'a> {
    pub fn new(
        scenario: &'a Scenario,
        receivers: Receivers<'a>,
        flows: Vec<RunningFlow<'a>>,
        (clock, stop): (Clock, &'a AtomicBool),
        rows: RowSender,
    ) -> Applications<'a> {
        Applications {
            scenario,
            receivers,
            stop,
            clock,
            flows,
            payload: vec![0; GIVE_BYTES],
            buffer: vec![0; TAKE_BYTES],
            rows,
        }
    }

    /// Runs to the end of the run, or until told to stop. Returns the records of flows, paths and
    /// objects.
    pub fn run(mut self) -> Result<Records, KernelError> {
        let mut next_sample = Time::ZERO;
        let mut now = self.clock.now();
        while now < self.scenario.duration && !self.stop.load(Ordering::Relaxed) {
            for flow in 0..self.flows.len() {
                self.keep_time(flow, now)?;
                self.look_for_ends(flow)?;
            }
            if next_sample <= now {
                self.sample(now)?;
                while next_sample <= now {
                    next_sample += self.scenario.sample_interval;
                }
            }
            for (flow, source) in self.wait(next_sample)? {
                self.serve(flow, source)?;
            }
            now = self.clock.now();
        }
        let end = now.min(self.scenario.duration);
        self.finish(end)
    }

    fn finish(mut self, end: Time) -> Result<Records, KernelError> {
        self.sample(end)?;
        let (scenario, mut records) = (self.scenario, Records::default());
        for flow in &mut self.flows {
            for exchange in std::mem::take(&mut flow.live) {
                if !exchange.settled {
                    let row = flow.connection(scenario, &exchange, end);
                    self.rows.send(Row::Connection(Box::new(row)));
                }
                flow.gone.absorb(&exchange.observed);
            }
            records.flows.push(flow.record(scenario, end));
            records.paths.extend(flow.paths.path_records(scenario, flow.index));
            records.objects.extend(objects(flow));
        }
        Ok(records)
    }

    /// Starts and stops an application, and drives it when its timer is due.
    fn keep_time(&mut self, flow: usize, now: Time) -> Result<(), KernelError> {
        let state = &mut self.flows[flow];
        if now < state.plan.start {
            return Ok(());
        }
        state.started = true;
        if !state.stopped && state.plan.stop.is_some_and(|stop| stop <= now) {
            state.stopped = true;
            state.application.stop(now - state.plan.start);
            state.live.iter_mut().for_each(Exchange::stop);
        }
        self.drive(flow)
    }

    /// Carries out the actions that the application requests now.
    fn drive(&mut self, flow: usize) -> Result<(), KernelError> {
        let now = self.clock.now();
        let since = now.saturating_sub(self.flows[flow].plan.start);
        while let Some(action) = self.flows[flow].application.poll(since) {
            self.flows[flow].carry_out(action, self.receivers, now)?;
        }
        let state = &mut self.flows[flow];
        if state.completed.is_none() && state.application.is_complete() {
            state.completed = Some(now);
        }
        Ok(())
    }

    /// Detects connections that are closed and whose data has all been acknowledged.
    fn look_for_ends(&mut self, flow: usize) -> Result<(), KernelError> {
        for at in (0..self.flows[flow].live.len()).rev() {
            let now = self.clock.now();
            let state = &mut self.flows[flow];
            let exchange = &mut state.live[at];
            exchange.end_stream();
            let number = exchange.number;
            let looked = exchange.look_for_end(state.plan.is_multipath(), now);
            let (has_ended, has_settled) = looked.map_err(|source| broken(state.plan, source))?;
            state.delivered += exchange.newly_acknowledged();
            if has_settled {
                self.settle(flow, at, now)?;
            }
            if has_ended {
                let state = &mut self.flows[flow];
                let since = now.saturating_sub(state.plan.start);
                state.application.on_closed(since, number);
                self.drive(flow)?;
            }
        }
        Ok(())
    }

    /// Makes the row of a connection whose counters are final.
    fn settle(&mut self, flow: usize, at: usize, now: Time) -> Result<(), KernelError> {
        let state = &mut self.flows[flow];
        if state.plan.is_multipath() {
            // The final counts of its subflows.
            state.sample(now).map_err(|source| broken(state.plan, source))?;
        }
        let row = state.connection(self.scenario, &state.live[at], now);
        self.rows.send(Row::Connection(Box::new(row)));
        if state.transient {
            let exchange = state.live.remove(at);
            state.gone.absorb(&exchange.observed);
        }
        Ok(())
    }

    /// Sleeps until something is due, and returns what is ready.
    fn wait(&self, next_sample: Time) -> Result<Vec<(usize, Source)>, KernelError> {
        let mut sources = Vec::new();
        let mut polled = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            flow.watch(|source, fd| {
                sources.push((index, source));
                polled.push(fd);
            });
        }
        let now = self.clock.now();
        let events = self.flows.iter().map(|flow| flow.next_event(now));
        let latest = next_sample.min(self.scenario.duration);
        let next = events.fold(latest.min(now + Time::from_millis(SLEEP_MAX_MS)), Time::min);
        match ppoll(&mut polled, Some(timespec(next.saturating_sub(now))), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(KernelError::call("wait for sockets", error)),
        }
        let ready = sources.iter().zip(&polled).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|(source, _)| *source).collect())
    }

    fn serve(&mut self, flow: usize, source: Source) -> Result<(), KernelError> {
        let state = &mut self.flows[flow];
        let number = match source {
            Source::Listener => return state.accept(),
            Source::Sending(number) | Source::Receiving(number) => number,
        };
        let plan = state.plan;
        let found = state.live.iter_mut().find(|exchange| exchange.number == number);
        let Some(exchange) = found else { return Ok(()) };
        if matches!(source, Source::Sending(_)) {
            let served = exchange.serve_sending(&self.payload);
            return served.map_err(|source| broken(plan, source));
        }
        let bytes =
            exchange.serve_receiving(&mut self.buffer).map_err(|source| broken(plan, source))?;
        if bytes == 0 {
            return Ok(());
        }
        state.delivered += bytes;
        if !state.application.wants_deliveries() {
            return Ok(());
        }
        let since = self.clock.now().saturating_sub(plan.start);
        state.application.on_delivered(since, number, bytes);
        self.drive(flow)
    }

    /// Writes a row for each running flow, and over MPTCP for each of its paths.
    fn sample(&mut self, now: Time) -> Result<(), KernelError> {
        let interval = self.scenario.sample_interval;
        for flow in &mut self.flows {
            let over = flow.completed.is_some_and(|at| at + interval <= now)
                && flow.live.iter().all(|exchange| exchange.settled);
            if flow.started && !over {
                // The thread may have been preempted since `now`.
                let rows = flow.sample(self.clock.now().min(self.scenario.duration));
                let (row, of_paths) = rows.map_err(|source| broken(flow.plan, source))?;
                self.rows.send(Row::Flow(row));
                of_paths.into_iter().for_each(|row| self.rows.send(Row::Path(row)));
            }
        }
        Ok(())
    }
}

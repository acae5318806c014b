//! Pages, videos and mixes over real sockets: one thread drives them all and
//! holds both ends of their connections, so that an application hears at once
//! what has arrived.

use super::exchange::Exchange;
use super::flow::{Flow, Source, objects, transfer};
use super::sender::broken;
use super::{GIVE_BYTES, SLEEP_MAX_MS, Shared, TAKE_BYTES};
use crate::KernelError;
use crate::hosts::Hosts;
use crate::settings::Settings;
use knee_emulator::{Clock, timespec};
use knee_record::{FlowRecord, FlowSample, ObjectRecord, TransferRecord};
use knee_scenario::{Scenario, Workload};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::ppoll;
use std::sync::atomic::Ordering;

/// All flows that are neither bulk nor a file.
pub struct Applications<'a> {
    scenario: &'a Scenario,
    hosts: &'a Hosts,
    shared: &'a Shared,
    clock: Clock,
    flows: Vec<Flow<'a>>,
    payload: Vec<u8>,
    buffer: Vec<u8>,
    samples: Vec<FlowSample>,
    transfers: Vec<TransferRecord>,
}

/// What is left of them.
pub struct Applied {
    pub samples: Vec<FlowSample>,
    pub flows: Vec<FlowRecord>,
    pub objects: Vec<ObjectRecord>,
    pub transfers: Vec<TransferRecord>,
}

impl<'a> Applications<'a> {
    /// Listens for all of them, each at the end that does not open.
    pub fn new(
        scenario: &'a Scenario,
        settings: &'a Settings,
        hosts: &'a Hosts,
        shared: &'a Shared,
        clock: Clock,
    ) -> Result<Applications<'a>, KernelError> {
        let flows = settings.flows.iter().enumerate().filter(|(_, plan)| !plan.is_stream());
        let flows = flows.map(|(index, plan)| Flow::new(scenario, hosts, index, plan));
        Ok(Applications {
            scenario,
            hosts,
            shared,
            clock,
            flows: flows.collect::<Result<_, _>>()?,
            payload: vec![0; GIVE_BYTES],
            buffer: vec![0; TAKE_BYTES],
            samples: Vec::new(),
            transfers: Vec::new(),
        })
    }

    /// Runs to the end of the run, or until told to stop.
    pub fn run(mut self) -> Result<Applied, KernelError> {
        let mut next_sample = Time::ZERO;
        let mut now = self.clock.now();
        while now < self.scenario.duration
            && !self.shared.stop.load(Ordering::Relaxed)
            && !self.flows.is_empty()
        {
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

    fn finish(mut self, end: Time) -> Result<Applied, KernelError> {
        self.sample(end)?;
        for flow in &mut self.flows {
            for exchange in std::mem::take(&mut flow.live) {
                if matches!(flow.plan.workload, Workload::Mix(_)) {
                    self.transfers.push(transfer(flow.index, &exchange, None));
                }
                flow.gone.absorb(&exchange.observed);
            }
        }
        let record = |flow: &Flow<'_>| {
            let whole = flow.completed;
            let mut row = flow.gone.record(self.scenario, flow.index, whole, flow.delivered, end);
            if matches!(flow.plan.workload, Workload::Mix(_)) {
                row.completion_ns = None;
            }
            row
        };
        Ok(Applied {
            flows: self.flows.iter().map(record).collect(),
            objects: self.flows.iter().flat_map(objects).collect(),
            samples: self.samples,
            transfers: self.transfers,
        })
    }

    /// Starts and stops an application and asks it when its time has come.
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

    /// Carries out what the application asks for now.
    fn drive(&mut self, flow: usize) -> Result<(), KernelError> {
        let now = self.clock.now();
        let since = now.saturating_sub(self.flows[flow].plan.start);
        while let Some(action) = self.flows[flow].application.poll(since) {
            self.flows[flow].carry_out(action, self.hosts, now)?;
        }
        let state = &mut self.flows[flow];
        if state.completed.is_none() && state.application.is_complete() {
            state.completed = Some(now);
        }
        Ok(())
    }

    /// Connections that were closed and are acknowledged to their end.
    fn look_for_ends(&mut self, flow: usize) -> Result<(), KernelError> {
        for at in (0..self.flows[flow].live.len()).rev() {
            let state = &mut self.flows[flow];
            let exchange = &mut state.live[at];
            exchange.end_stream();
            if exchange.is_over().map_err(|source| broken(state.plan, source))? {
                self.end(flow, at)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, flow: usize, at: usize) -> Result<(), KernelError> {
        let now = self.clock.now();
        let state = &mut self.flows[flow];
        let exchange = state.live.remove(at);
        state.gone.absorb(&exchange.observed);
        if matches!(state.plan.workload, Workload::Mix(_)) {
            self.transfers.push(transfer(state.index, &exchange, Some(now)));
        }
        let since = now.saturating_sub(state.plan.start);
        state.application.on_closed(since, exchange.number);
        self.drive(flow)
    }

    /// Sleeps until something is to do; what is ready.
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
        let since = self.clock.now().saturating_sub(plan.start);
        state.application.on_delivered(since, number, bytes);
        self.drive(flow)
    }

    /// A row for each flow that runs.
    fn sample(&mut self, now: Time) -> Result<(), KernelError> {
        let interval = self.scenario.sample_interval;
        for flow in &mut self.flows {
            let over = flow.completed.is_some_and(|at| at + interval <= now);
            if flow.started && !over {
                let row = flow.sample(self.clock.now().min(self.scenario.duration));
                self.samples.push(row.map_err(|source| broken(flow.plan, source))?);
            }
        }
        Ok(())
    }
}

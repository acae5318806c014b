//! Applications of a scenario over QUIC: one thread drives all of them and both ends of their
//! connections, so that an application learns immediately what has arrived.

use super::QuicError;
use super::flow::RunningFlow;
use super::records;
use super::settings::FlowSettings;
use crate::Room;
use knee_emulator::{Clock, timespec};
use knee_host::HostError;
use knee_record::{Records, Row, RowSender};
use knee_scenario::Scenario;
use knee_testbed::{Hosts, TestbedError};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest sleep, which bounds the reaction to a stop request.
const SLEEP_MAX: Time = Time::from_millis(20);
/// Bytes passed to a stream in one call.
const GIVE_BYTES: usize = 1 << 16;

/// All flows.
pub struct Applications<'a> {
    scenario: &'a Scenario,
    flows: Vec<RunningFlow<'a>>,
    payload: Vec<u8>,
    room: Room,
}

impl<'a> Applications<'a> {
    pub fn new(
        scenario: &'a Scenario,
        hosts: &Hosts,
        settings: Vec<FlowSettings>,
    ) -> Result<Applications<'a>, QuicError> {
        let flows = settings.into_iter().enumerate();
        let flows = flows.map(|(index, one)| RunningFlow::new(scenario, hosts, index, one));
        Ok(Applications {
            scenario,
            flows: flows.collect::<Result<_, _>>()?,
            payload: vec![0; GIVE_BYTES],
            room: Room::default(),
        })
    }

    /// Runs to the end of the run, or until told to stop.
    pub fn run(
        mut self,
        clock: Clock,
        stop: &AtomicBool,
        rows: &RowSender,
    ) -> Result<Records, QuicError> {
        let mut next_sample = Time::ZERO;
        let mut now = clock.now();
        while now < self.scenario.duration && !stop.load(Ordering::Relaxed) {
            for flow in 0..self.flows.len() {
                self.drive(flow, now, rows)?;
            }
            if next_sample <= now {
                self.sample(now, rows)?;
                while next_sample <= now {
                    next_sample += self.scenario.sample_interval;
                }
            }
            self.wait(now, clock, next_sample)?;
            now = clock.now();
        }
        let end = now.min(self.scenario.duration);
        self.finish(end, rows)
    }

    /// Does everything that is due for a flow.
    fn drive(&mut self, index: usize, now: Time, rows: &RowSender) -> Result<(), QuicError> {
        let flow = &mut self.flows[index];
        if now < flow.plan.start {
            return Ok(());
        }
        flow.started = true;
        let since = now - flow.plan.start;
        if !flow.stopped && flow.plan.stop.is_some_and(|stop| stop <= now) {
            flow.stopped = true;
            flow.application.stop(since);
            flow.stop();
        }
        flow.receive(now, &mut self.room)?;
        // Twice: answers follow at once, and so does the data that they request.
        let mut came = Vec::new();
        for _ in 0..2 {
            while let Some(action) = flow.application.poll(since) {
                flow.carry_out(action, now)?;
            }
            flow.work(now)?;
            came.clear();
            flow.serve(&self.payload, &mut came);
            if flow.application.wants_deliveries() {
                for (number, bytes) in &came {
                    flow.application.on_delivered(since, *number, *bytes);
                }
            }
        }
        while let Some(action) = flow.application.poll(since) {
            flow.carry_out(action, now)?;
        }
        self.end_connections(index, now, rows)?;
        self.flows[index].work(now)
    }

    fn end_connections(
        &mut self,
        index: usize,
        now: Time,
        rows: &RowSender,
    ) -> Result<(), QuicError> {
        let flow = &mut self.flows[index];
        let since = now - flow.plan.start;
        for number in flow.ended() {
            flow.observe();
            let at = flow.live.iter().position(|exchange| exchange.number == number);
            let Some(at) = at else { continue };
            let row = records::connection(flow, &flow.live[at], Some(now), now);
            rows.send(Row::Connection(Box::new(row)));
            if flow.transient {
                flow.forget(at, now);
            }
            flow.application.on_closed(since, number);
            while let Some(action) = flow.application.poll(since) {
                flow.carry_out(action, now)?;
            }
        }
        if flow.completed.is_none() && flow.application.is_complete() {
            flow.completed = Some(now);
        }
        Ok(())
    }

    /// Sleeps until something is due.
    fn wait(&mut self, worked: Time, clock: Clock, next_sample: Time) -> Result<(), QuicError> {
        let mut next = next_sample.min(self.scenario.duration).min(worked + SLEEP_MAX);
        // Asked at the time of the work: what becomes due after it has not been done.
        for flow in &mut self.flows {
            next = next.min(flow.timer(worked));
        }
        let sockets = self.flows.iter().flat_map(|flow| flow.sockets());
        let mut polled: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        match ppoll(&mut polled, Some(timespec(next.saturating_sub(clock.now()))), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => {
                Err(TestbedError::from(HostError::call("wait for sockets", error)).into())
            }
        }
    }

    /// Writes a row for each running flow, and for each path of a flow over several.
    fn sample(&mut self, now: Time, rows: &RowSender) -> Result<(), QuicError> {
        let interval = self.scenario.sample_interval;
        for flow in &mut self.flows {
            let over = flow.completed.is_some_and(|at| at + interval <= now)
                && flow.live.iter().all(|exchange| exchange.over);
            if !flow.started || over {
                continue;
            }
            if let Some(problem) = flow.failure() {
                return Err(QuicError::Flow { flow: flow.settings.label.clone(), problem });
            }
            flow.observe();
            let (row, paths) = records::samples(flow, now);
            rows.send(Row::Flow(row));
            paths.into_iter().for_each(|row| rows.send(Row::Path(row)));
        }
        Ok(())
    }

    fn finish(mut self, end: Time, rows: &RowSender) -> Result<Records, QuicError> {
        self.sample(end, rows)?;
        let (scenario, mut records) = (self.scenario, Records::default());
        for flow in &mut self.flows {
            flow.observe();
            for exchange in std::mem::take(&mut flow.live) {
                if !exchange.over {
                    let row = self::records::connection(flow, &exchange, None, end);
                    rows.send(Row::Connection(Box::new(row)));
                }
                flow.gone.absorb(&exchange.counted);
            }
            records.flows.push(records::flow(scenario, flow, end));
            records.paths.extend(records::paths(scenario, flow));
            records.objects.extend(records::objects(flow));
        }
        Ok(records)
    }
}

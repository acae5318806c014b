//! The course of flows that are programs: servers before the run, clients at their time, both ended
//! with the run.

use crate::certificates::Certificates;
use crate::environment::{Variables, other, path_names, variables};
use crate::names::Names;
use crate::process::{NotStarted, Process, Start};
use crate::ready::Transport;
use crate::sockets::Known;
use knee_record::Verdict;
use knee_scenario::{Flow, Program, Ready, Scenario};
use knee_testbed::{Clock, End, Family, Hosts, Observed, TestbedError, address};
use knee_units::Time;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Port of the first flow's server.
const PORT: u16 = 5201;
/// Longest time from the start of the servers until each is ready, if its flow's timeout is longer.
const READY_MAX: Time = Time::from_secs(10);
/// Interval at which programs are looked at.
const POLL: Duration = Duration::from_millis(5);
/// Interval at which the load of their tasks is read.
const LOAD_PERIOD: Time = Time::from_millis(200);

/// What makes a run of a flow less than it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Verdict on the run because of it.
    pub verdict: Verdict,
    /// What happened, with the name of the flow.
    pub what: String,
}

/// A flow and its programs.
#[derive(Debug)]
pub struct RunningFlow<'s> {
    /// Its place in the scenario.
    pub index: usize,
    pub flow: &'s Flow,
    program: &'s Program,
    /// Name for messages and files.
    pub label: String,
    pub port: u16,
    server: Option<Process>,
    client: Option<Process>,
    /// When the client was started.
    pub started: Option<Time>,
    /// When it ended, if it did so by itself and without a failure.
    pub completed: Option<Time>,
    /// When the flow ended.
    pub ended: Option<Time>,
    /// Why it failed.
    failed: Option<String>,
    stage: Stage,
    /// What else is to be said of its programs, with the verdict because of it.
    remarks: Vec<(Verdict, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server is not ready yet.
    Preparing,
    /// The client has not started yet.
    Waiting,
    Running,
    /// The client has been asked to end.
    Ending,
    /// The client has ended; the server has been asked to.
    EndingServer,
    Over,
}

/// Returns the port of a flow, by its number among those that are programs.
pub fn port(number: usize) -> u16 {
    PORT + number as u16
}

/// All flows of a run.
#[derive(Debug)]
pub struct Programs<'s> {
    scenario: &'s Scenario,
    hosts: &'s Hosts,
    names: Names,
    /// Folder of the run, and of the programs' output.
    folders: (&'s Path, &'s Path),
    certificates: Certificates,
    pub flows: Vec<RunningFlow<'s>>,
}

impl<'s> Programs<'s> {
    /// Starts the servers.
    ///
    /// # Errors
    ///
    /// The host does not permit the namespaces. A server that cannot be started is a failure of its
    /// flow.
    pub fn start(
        scenario: &'s Scenario,
        hosts: &'s Hosts,
        folders: (&'s Path, &'s Path),
        clock: Clock,
    ) -> Result<Programs<'s>, TestbedError> {
        let flows = scenario.flows.iter().enumerate();
        let flows = flows.filter_map(|(index, flow)| Some((index, flow, flow.program.as_ref()?)));
        let flows = flows.enumerate().map(|(number, of)| RunningFlow::new(scenario, number, of));
        let names = Names::new(scenario);
        let certificates = Certificates::create(folders.0, scenario.paths.len())?;
        let flows = flows.collect();
        let mut all = Programs { scenario, hosts, names, folders, certificates, flows };
        for at in 0..all.flows.len() {
            let started = all.start_program(at, End::Sender, clock.now())?;
            all.flows[at].server = started;
        }
        Ok(all)
    }

    /// Waits until each server is ready or has failed, or until `stop`.
    pub fn wait_until_ready(&mut self, clock: Clock, stop: &AtomicBool) {
        let mut now = clock.now();
        while self.flows.iter().any(|flow| flow.stage == Stage::Preparing)
            && !stop.load(Ordering::Relaxed)
        {
            self.flows.iter_mut().for_each(|flow| flow.prepare(now));
            thread::park_timeout(POLL);
            now = clock.now();
        }
    }

    /// Runs until the end of the scenario or until `stop`, and ends all programs.
    ///
    /// # Errors
    ///
    /// The host does not permit the namespaces.
    pub fn run(&mut self, clock: Clock, stop: &AtomicBool) -> Result<(), TestbedError> {
        let mut next_load = Time::ZERO;
        loop {
            let now = clock.now();
            let is_over = now >= self.scenario.duration || stop.load(Ordering::Relaxed);
            for at in 0..self.flows.len() {
                let flow = &self.flows[at];
                if flow.stage == Stage::Waiting && now >= flow.flow.start && !is_over {
                    let client = self.start_program(at, End::Receiver, now)?;
                    self.flows[at].client = client;
                    continue;
                }
                self.flows[at].step(now, is_over);
            }
            if is_over && self.flows.iter().all(|flow| flow.stage == Stage::Over) {
                return Ok(());
            }
            if next_load <= now {
                self.flows.iter_mut().for_each(RunningFlow::read_load);
                next_load = now + LOAD_PERIOD;
            }
            thread::park_timeout(POLL);
        }
    }

    /// Puts the secrets that the programs wrote into the capture of the run.
    pub fn complete_capture(&self, capture: Option<&File>, observed: &mut Observed) {
        self.certificates.complete_capture(capture, observed);
    }

    /// Starts the program at one end of a flow. Returns `None` if there is no such program, which is a
    /// failure of the flow.
    fn start_program(
        &mut self,
        at: usize,
        end: End,
        now: Time,
    ) -> Result<Option<Process>, TestbedError> {
        let flow = &self.flows[at];
        let (command, network) = match end {
            End::Sender => (&flow.program.server, &self.hosts.sender),
            End::Receiver => (&flow.program.client, &self.hosts.receiver),
        };
        let values = self.values(flow, end);
        let words = Program::arguments(command, &values);
        let variables = self.variables(&values, end);
        let name = format!("{}.{}", flow.label, role(end));
        let started = Process::start(
            network,
            &self.names,
            &Start {
                name: &name,
                words: &words,
                variables: &variables,
                folder: self.folders.1,
                line: match (&flow.program.ready, end) {
                    (Ready::Line(line), End::Sender) => Some(line.as_str()),
                    _ => None,
                },
            },
        );
        let flow = &mut self.flows[at];
        match started {
            Ok(process) => {
                flow.started = (end == End::Receiver).then_some(now);
                if end == End::Receiver {
                    flow.stage = Stage::Running;
                }
                Ok(Some(process))
            }
            Err(NotStarted::Host(error)) => Err(error),
            Err(NotStarted::Command(error)) => {
                let program = words.first().map_or("", String::as_str);
                flow.fail(format!(
                    "could not be tried: the {} {program} cannot be started: {error}",
                    role(end)
                ));
                Ok(None)
            }
        }
    }

    /// Returns the values of the placeholders.
    fn values(&self, flow: &RunningFlow<'_>, end: End) -> Variables {
        let over = |end| address(flow.flow.paths[0], end, Family::V4).to_string();
        let rest = self.scenario.duration.saturating_sub(flow.flow.start);
        let bytes = flow.program.bytes.map(|bytes| ("bytes", bytes.to_string()));
        let others = [
            ("here", over(end)),
            ("peer", over(other(end))),
            ("port", flow.port.to_string()),
            ("cc", flow.flow.controller.name.clone()),
            ("seconds", rest.as_secs_f64().ceil().to_string()),
        ];
        others.into_iter().chain(bytes).chain(self.certificates.values()).collect()
    }

    /// Returns the environment of a program.
    fn variables(&self, values: &Variables, end: End) -> Variables {
        let named = |name: &str| match name {
            "here" => Some("KNEE_HERE"),
            "peer" => Some("KNEE_PEER"),
            "port" => Some("KNEE_PORT"),
            "cc" => Some("KNEE_CC"),
            "bytes" => Some("KNEE_BYTES"),
            _ => None,
        };
        let paths = path_names(self.scenario);
        let mut all = variables(&paths, end, self.folders.0, &self.certificates);
        // Of the same name, the later one counts: the addresses over the path of the flow.
        all.extend(values.iter().filter_map(|(name, value)| Some((named(name)?, value.clone()))));
        all
    }
}

impl<'s> RunningFlow<'s> {
    fn new(
        scenario: &Scenario,
        number: usize,
        (index, flow, program): (usize, &'s Flow, &'s Program),
    ) -> RunningFlow<'s> {
        let is_group = scenario.flows.iter().filter(|other| other.name == flow.name).count() > 1;
        RunningFlow {
            index,
            flow,
            program,
            label: match is_group {
                true => format!("{}[{}]", flow.name, flow.index),
                false => flow.name.clone(),
            },
            port: port(number),
            server: None,
            client: None,
            started: None,
            completed: None,
            ended: None,
            failed: None,
            stage: Stage::Preparing,
            remarks: Vec::new(),
        }
    }

    fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
        self.stage = Stage::EndingServer;
    }

    /// Looks whether the server is ready.
    fn prepare(&mut self, now: Time) {
        if self.stage != Stage::Preparing {
            return;
        }
        let Some(server) = &mut self.server else { return };
        let limit = READY_MAX.min(self.program.timeout);
        let is_ready = match &self.program.ready {
            Ready::Tcp => server.listens(Transport::Tcp, self.port),
            Ready::Udp => server.listens(Transport::Udp, self.port),
            Ready::Line(_) => server.has_written_line(),
            Ready::After(time) => now >= *time,
        };
        if is_ready {
            self.stage = Stage::Waiting;
        } else if server.is_gone() {
            let how = server.how_it_ended();
            self.fail(format!("failed: the server ended before it was ready, {how}"));
        } else if now >= limit {
            let awaited = match &self.program.ready {
                Ready::Tcp => format!("did not listen on TCP port {}", self.port),
                Ready::Udp => format!("did not open UDP port {}", self.port),
                Ready::Line(line) => format!("did not write \"{line}\""),
                Ready::After(_) => "was not started".to_owned(),
            };
            self.fail(format!("failed: the server {awaited} within {limit}"));
        }
    }

    /// Does what is due.
    fn step(&mut self, now: Time, is_over: bool) {
        match self.stage {
            Stage::Preparing | Stage::Waiting if is_over => self.stage = Stage::EndingServer,
            Stage::Preparing | Stage::Waiting | Stage::Over => {}
            Stage::Running => self.look_at_client(now, is_over),
            Stage::Ending => {
                if self.client.as_mut().is_none_or(|client| client.end(now)) {
                    self.end_client();
                }
            }
            Stage::EndingServer => {
                if self.server.as_mut().is_none_or(|server| server.end(now)) {
                    self.end_server();
                }
            }
        }
    }

    fn look_at_client(&mut self, now: Time, is_over: bool) {
        let Some(client) = &mut self.client else { return };
        let running = now.saturating_sub(self.started.unwrap_or_default());
        if let Some(status) = client.status() {
            self.ended = Some(now);
            if status.success() {
                self.completed = Some(now);
            } else {
                let what = match status.code() {
                    // What a shell says of a command that is not there (POSIX, XCU 2.8.2).
                    Some(127) => "could not be tried",
                    _ => "failed",
                };
                self.failed = Some(format!("{what}: client {}", client.how_it_ended()));
            }
            self.end_client();
        } else if running >= self.program.timeout && !is_over {
            let limit = self.program.timeout;
            self.failed = Some(format!("failed: the client did not end within {limit}"));
            self.begin_to_end(now);
        } else if is_over || self.flow.stop.is_some_and(|stop| stop <= now) {
            self.begin_to_end(now);
        }
    }

    fn begin_to_end(&mut self, now: Time) {
        self.read_load();
        self.ended = Some(now);
        self.stage = Stage::Ending;
    }

    fn end_client(&mut self) {
        if let Some(mut client) = self.client.take() {
            self.note(&mut client, End::Receiver);
        }
        self.stage = Stage::EndingServer;
    }

    fn end_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            self.note(&mut server, End::Sender);
        }
        self.stage = Stage::Over;
    }

    /// Keeps what is to be said of a program before it is gone.
    fn note(&mut self, process: &mut Process, end: End) {
        let lasted =
            self.ended.unwrap_or_default().saturating_sub(self.started.unwrap_or_default());
        let lacked = process.lacked_processor(Duration::from_nanos(lasted.as_nanos()));
        let remarks = process.remarks().into_iter().map(|what| (Verdict::Valid, what));
        let remarks = remarks.chain(lacked.map(|what| (Verdict::Degraded, what)));
        self.remarks
            .extend(remarks.map(|(verdict, what)| (verdict, format!("{} {what}", role(end)))));
    }

    fn read_load(&mut self) {
        if self.stage == Stage::Running {
            [&mut self.server, &mut self.client].into_iter().flatten().for_each(Process::read_load);
        }
    }

    /// Says which controller its connections have, if it is another than the one that it is said to
    /// use.
    pub fn other_controller(&self, known: &[Known]) -> Option<Finding> {
        let main = known.iter().max_by_key(|one| one.info.sent_bytes)?;
        let said = &self.flow.controller.name;
        let is_other = !main.controller.is_empty() && main.controller != said.replace('-', "_");
        is_other.then(|| Finding {
            verdict: Verdict::Degraded,
            what: format!(
                "flow {}: said to use {said}, but its connection has {}",
                self.label, main.controller
            ),
        })
    }

    /// Says what is to be said of the flow. `delivered` is what arrived, bytes.
    pub fn findings(&self, delivered: u64) -> Vec<Finding> {
        let finding =
            |verdict, what: &str| Finding { verdict, what: format!("flow {}: {what}", self.label) };
        let mut findings = Vec::new();
        match (&self.failed, self.program.bytes) {
            (Some(why), _) => findings.push(finding(Verdict::Invalid, why)),
            (None, Some(bytes)) if self.completed.is_some() && delivered < bytes => {
                let what = format!("failed: the client ended after {delivered} of {bytes} bytes");
                findings.push(finding(Verdict::Invalid, &what));
            }
            _ => {}
        }
        findings.extend(self.remarks.iter().map(|(verdict, what)| finding(*verdict, what)));
        findings
    }
}

fn role(end: End) -> &'static str {
    if end == End::Sender { "server" } else { "client" }
}

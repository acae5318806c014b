//! One run from beginning to end.

use crate::flows::{Applications, Applied, FLOWS_MAX, Receiver, Sender, Sent, Shared};
use crate::hosts::Hosts;
use crate::probe::{Prober, echo, echo_sockets, interval, probe_sockets};
use crate::routes::links_and_routes;
use crate::self_check::self_check;
use crate::settings::Settings;
use crate::{Control, Health, KernelError};
use knee_emulator::realtime::{self, CpuTime};
use knee_emulator::{Clock, Emulator, Outcome, Packet, Plan, Tun, timespec};
use knee_host::Namespace;
use knee_link::Link;
use knee_record::{Cost, LinkSample, Records};
use knee_scenario::Scenario;
use knee_units::Time;
use nix::poll::ppoll;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};

/// How often the run looks at its [`Control`].
const CONTROL_PERIOD: Time = Time::from_millis(20);

/// Runs a scenario to its end, or until `control` says to stop.
///
/// # Errors
///
/// What the scenario asks and the kernel cannot be set to, or what the host
/// does not permit; each says what to do.
pub fn run(scenario: &Scenario, control: &Control) -> Result<(Records, Health), KernelError> {
    let settings = settings(scenario)?;
    #[cfg(feature = "bpf")]
    let _registered = register_bpf_controllers(&settings)?;
    let _awake = realtime::stay_awake();
    let (hosts, devices) = Hosts::create(&settings)?;
    let (checks, devices) = self_check(scenario, &settings, &hosts, devices)?;
    let stage = Stage { scenario, settings: &settings, hosts: &hosts };
    let (records, mut health) = stage.play(devices, control)?;
    health.self_check = checks;
    Ok((records, health))
}

/// Whether the kernel can be set to what a scenario asks; runs nothing.
///
/// # Errors
///
/// As [`run`], but for what only making the network tells.
pub fn check_scenario(scenario: &Scenario) -> Result<(), KernelError> {
    settings(scenario).map(drop)
}

/// Whether the host permits what every run needs: network namespaces and TUN
/// devices. What it makes to find out is gone when it returns.
///
/// # Errors
///
/// [`KernelError::Host`], with what to do.
pub fn check_host() -> Result<(), KernelError> {
    Ok(Namespace::create()?.within(|| Tun::create("knee0").map(drop))?)
}

fn settings(scenario: &Scenario) -> Result<Settings, KernelError> {
    if scenario.flows.len() > FLOWS_MAX {
        return Err(KernelError::Unsupported {
            place: "scenario".to_owned(),
            problem: format!("it has {} flows", scenario.flows.len()),
            advice: format!("write at most {FLOWS_MAX}, each needs a port"),
        });
    }
    Settings::new(scenario)
}

/// Controllers that vanish when the answer is dropped, or the process ends.
#[cfg(feature = "bpf")]
fn register_bpf_controllers(
    settings: &Settings,
) -> Result<Vec<knee_host::bpf::Registration>, KernelError> {
    let each = settings.bpf_controllers.iter();
    let registered = each.map(|one| knee_host::bpf::register(&one.name, &one.selection));
    registered.collect::<Result<_, _>>().map_err(|error| KernelError::Unsupported {
        place: "cc".to_owned(),
        problem: error.problem(),
        advice: error.advice(),
    })
}

struct Stage<'a> {
    scenario: &'a Scenario,
    settings: &'a Settings,
    hosts: &'a Hosts,
}

impl Stage<'_> {
    fn play(&self, devices: Vec<Tun>, control: &Control) -> Result<(Records, Health), KernelError> {
        let shared = Shared::new(self.scenario.flows.len());
        let receiver = self.hosts.receiver.within(|| Receiver::listen(self.settings))?;
        let cpu = CpuTime::read();
        let paths = self.settings.paths.len();
        let far = self.hosts.receiver.within(|| echo_sockets(paths))?;
        let near = self.hosts.sender.within(|| probe_sockets(paths))?;
        let clock = Clock::start();
        let applications =
            Applications::new(self.scenario, self.settings, self.hosts, &shared, clock)?;
        let (emulated, sent, probes) = thread::scope(|scope| {
            let emulator = scope.spawn(|| self.emulate(devices, clock, &shared));
            let receiver = scope.spawn(|| receiver.run(&shared));
            let sender = scope.spawn(|| self.send(clock, &shared));
            let applications = scope.spawn(|| applications.run());
            let echo = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                echo(&far, &shared.stop)
            });
            let prober = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                let prober = Prober::new(near, self.probe_intervals(), clock);
                prober.run(self.scenario.duration, &shared.stop)
            });
            supervise(&sender, clock, control, &shared);
            shared.stop.store(true, Ordering::Relaxed);
            joined(receiver)?;
            joined(echo)?;
            let sent = together(joined(sender)?, joined(applications)?);
            Ok::<_, KernelError>((joined(emulator)?, sent, joined(prober)?))
        })?;
        let Emulated { mut health, links, devices } = emulated;
        health.probes = probes;
        health.stolen = CpuTime::read().stolen_since(cpu);
        // Their counters go with them.
        health.tun_dropped_packets = self.hosts.dropped_packets()?;
        drop(devices);
        let end = health.emulator.duration.min(self.scenario.duration);
        let cost = Cost {
            events: health.emulator.packets,
            data_packets: sent.flows.iter().map(|flow| flow.delivered_packets).sum(),
        };
        let records = Records {
            links,
            link_names: self.scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns: end.as_nanos(),
            interrupted: control.stop.load(Ordering::Relaxed) && end < self.scenario.duration,
            cost,
            ..sent
        };
        Ok((records.with_rates(self.scenario), health))
    }

    fn probe_intervals(&self) -> Vec<Time> {
        let paths = 0..self.settings.paths.len();
        paths.map(|path| interval(self.scenario.path_rate(path))).collect()
    }

    fn emulate(
        &self,
        devices: Vec<Tun>,
        clock: Clock,
        shared: &Shared,
    ) -> Result<Emulated, KernelError> {
        let warning = realtime::prepare(realtime::EMULATOR);
        let (links, routes) = links_and_routes(self.scenario);
        let plan = Plan {
            links,
            routes,
            sample_interval: self.scenario.sample_interval,
            duration: self.scenario.duration,
        };
        // Those of the scenario, which come first.
        let sampled = self.scenario.links.len();
        let mut links = Vec::new();
        let mut sample = |now: Time, emulated: &mut [Link<Packet>]| {
            let emulated = emulated[..sampled].iter_mut().enumerate();
            links.extend(emulated.map(|(index, link)| LinkSample::of(link, index, now)));
        };
        let outcome = Emulator::new(plan, devices, clock, &mut sample).run(&shared.stop);
        // Whatever happened, the others must not wait for packets.
        shared.stop.store(true, Ordering::Relaxed);
        let Outcome { tally, devices } = outcome?;
        let duration = tally.duration.as_secs_f64().max(1e-9);
        let health = Health {
            emulator: tally,
            cpu: realtime::thread_cpu_s() / duration,
            warnings: warning.into_iter().collect(),
            ..Health::default()
        };
        Ok(Emulated { health, links, devices })
    }

    fn send(&self, clock: Clock, shared: &Shared) -> Result<Sent, KernelError> {
        self.hosts.sender.enter()?;
        Sender::new(self.scenario, self.settings, shared, clock).run()
    }
}

/// What the emulator leaves of a run.
struct Emulated {
    health: Health,
    links: Vec<LinkSample>,
    devices: Vec<Tun>,
}

/// Carries requests to stop into the run and its time out of it.
fn supervise<T>(
    sender: &ScopedJoinHandle<'_, T>,
    clock: Clock,
    control: &Control,
    shared: &Shared,
) {
    while !sender.is_finished() {
        if control.stop.load(Ordering::Relaxed) {
            shared.stop.store(true, Ordering::Relaxed);
        }
        control.now_ns.store(clock.now().as_nanos(), Ordering::Relaxed);
        // Interrupted or not: the loop looks again.
        let _ = ppoll(&mut [], Some(timespec(CONTROL_PERIOD)), None);
    }
}

/// What all flows have to tell, in the order of time and of the scenario.
fn together(sent: Sent, applied: Applied) -> Records {
    let mut records = Records {
        flows: sent.flows,
        samples: sent.samples,
        paths: sent.paths,
        path_samples: sent.path_samples,
        objects: applied.objects,
        transfers: applied.transfers,
        ..Records::default()
    };
    records.samples.extend(applied.samples);
    records.samples.sort_by_key(|row| row.time_ns);
    records.flows.extend(applied.flows);
    records.flows.sort_by_key(|row| row.flow);
    records
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, KernelError>>) -> Result<T, KernelError> {
    thread.join().map_err(|_| KernelError::Panicked)?
}

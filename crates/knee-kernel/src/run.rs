//! One run from beginning to end.

use crate::flows::{Applications, FLOWS_MAX, listen};
use crate::hosts::Hosts;
use crate::probe::{Prober, echo, echo_sockets, interval, probe_sockets};
use crate::routes::links_and_routes;
use crate::self_check::self_check;
use crate::settings::Settings;
use crate::{Control, Health, KernelError};
use knee_emulator::realtime::{self, CpuTime};
use knee_emulator::{Clock, Emulation, Emulator, IpPacket, Outcome, Tun, timespec};
use knee_host::Namespace;
use knee_link::Link;
use knee_record::{ClassSample, Cost, LinkSample, Records};
use knee_scenario::Scenario;
use knee_units::Time;
use nix::poll::ppoll;
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
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
        let stop = AtomicBool::new(false);
        let flows = listen(self.scenario, self.settings, self.hosts)?;
        let cpu = CpuTime::read();
        let paths = self.settings.paths.len();
        let far = self.hosts.receiver.within(|| echo_sockets(paths))?;
        let near = self.hosts.sender.within(|| probe_sockets(paths))?;
        let clock = Clock::start();
        let epoch_unix_ns = unix_time_ns();
        let applications = Applications::new(self.scenario, self.hosts, flows, &stop, clock);
        let (emulated, applied, probes) = thread::scope(|scope| {
            let emulator = scope.spawn(|| self.emulate(devices, clock, &stop));
            let applications = scope.spawn(|| applications.run());
            let echo = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                echo(&far, &stop)
            });
            let prober = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                let prober = Prober::new(near, self.probe_intervals(), clock);
                prober.run(self.scenario.duration, &stop)
            });
            supervise(&applications, clock, control, &stop);
            stop.store(true, Ordering::Relaxed);
            joined(echo)?;
            let applied = joined(applications)?;
            Ok::<_, KernelError>((joined(emulator)?, applied, joined(prober)?))
        })?;
        let Emulated { mut health, links, classes, devices } = emulated;
        health.probes = probes;
        health.stolen = CpuTime::read().stolen_since(cpu);
        // Their counters go with them.
        health.tun_dropped_packets = self.hosts.dropped_packets()?;
        drop(devices);
        let end = health.emulator.duration.min(self.scenario.duration);
        let cost = Cost {
            events: health.emulator.packets,
            data_packets: applied.flows.iter().map(|flow| flow.delivered_packets).sum(),
        };
        let records = Records {
            links,
            classes,
            link_names: self.scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns: end.as_nanos(),
            interrupted: control.stop.load(Ordering::Relaxed) && end < self.scenario.duration,
            cost,
            epoch_unix_ns,
            ..applied
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
        stop: &AtomicBool,
    ) -> Result<Emulated, KernelError> {
        let warning = realtime::prepare(realtime::EMULATOR);
        let (links, routes) = links_and_routes(self.scenario);
        let plan = Emulation {
            links,
            routes,
            sample_interval: self.scenario.sample_interval,
            duration: self.scenario.duration,
        };
        // Those of the scenario, which come first.
        let sampled = self.scenario.links.len();
        let (mut links, mut classes) = (Vec::new(), Vec::new());
        let mut sample = |now: Time, emulated: &mut [Link<IpPacket>]| {
            for (index, link) in emulated[..sampled].iter_mut().enumerate() {
                links.push(LinkSample::of(link, index, now));
                classes.extend(ClassSample::of(link, index, now));
            }
        };
        let outcome = Emulator::new(plan, devices, clock, &mut sample).run(stop);
        // Whatever happened, the others must not wait for packets.
        stop.store(true, Ordering::Relaxed);
        let Outcome { tally, devices } = outcome?;
        let duration = tally.duration.as_secs_f64().max(1e-9);
        let health = Health {
            emulator: tally,
            cpu: realtime::thread_cpu_s() / duration,
            warnings: warning.into_iter().collect(),
            ..Health::default()
        };
        Ok(Emulated { health, links, classes, devices })
    }
}

/// Nanoseconds since 1970 (UTC); zero: the host does not know.
fn unix_time_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME);
    now.map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// What the emulator leaves of a run.
struct Emulated {
    health: Health,
    links: Vec<LinkSample>,
    classes: Vec<ClassSample>,
    devices: Vec<Tun>,
}

/// Carries requests to stop into the run and its time out of it.
fn supervise<T>(
    applications: &ScopedJoinHandle<'_, T>,
    clock: Clock,
    control: &Control,
    stop: &AtomicBool,
) {
    while !applications.is_finished() {
        if control.stop.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
        control.now_ns.store(clock.now().as_nanos(), Ordering::Relaxed);
        // Interrupted or not: the loop looks again.
        let _ = ppoll(&mut [], Some(timespec(CONTROL_PERIOD)), None);
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, KernelError>>) -> Result<T, KernelError> {
    thread.join().map_err(|_| KernelError::Panicked)?
}

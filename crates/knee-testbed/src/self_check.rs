//! Self-check of the emulator on this host before a run: measures delay and rate of every path with
//! UDP and compares them with the scenario.
//!
//! The links have their initial settings, without loss, AQM and queue limit.

use crate::probe::{
    PROBE_BYTES, PathProbe, Prober, SLEEP_MAX, echo, echo_sockets, probe_sockets, receive_burst,
    send_burst,
};
use crate::routes::links_and_routes;
use crate::{Testbed, TestbedError};
use knee_emulator::{Clock, Emulation, Emulator, Tun, realtime, timespec};
use knee_link::{Config, RateModel};
use knee_scenario::{Reverse, Scenario};
use knee_units::{Rate, Time};
use nix::poll::ppoll;
use rand_chacha::ChaCha8Rng;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Shortest interval between the probes of a path.
const PROBE_INTERVAL: Time = Time::from_millis(4);
/// Shortest duration of probing, and the fewest intervals in it.
const PROBING: Time = Time::from_millis(200);
const PROBES_MIN: u64 = 10;
/// Duration of a burst on its link.
const BURST: Time = Time::from_millis(100);
/// Fewer datagrams would measure the clock, more would measure the memory.
const BURST_PACKETS: std::ops::RangeInclusive<u64> = 10..=10_000;
/// Delay for the receiving thread to reach its socket: it may sleep this long after the last probe
/// before it notices the end of probing.
const HEAD_START: Time = Time::from_nanos(SLEEP_MAX.as_nanos() + 5_000_000);

/// Expected and measured properties of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCheck {
    /// Path, by its index in the scenario.
    pub path: usize,
    /// RTT of a probe over the links of the scenario.
    pub rtt_expected: Time,
    /// Median RTT of the probes; `None` if none was answered.
    pub rtt: Option<Time>,
    /// Rate of the slowest link; `None` if unlimited or a trace.
    pub rate_expected: Option<Rate>,
    /// Rate at which a burst arrived; `None` if it did not, or was not sent.
    pub rate: Option<Rate>,
}

impl PathCheck {
    /// Error of the RTT, positive if it is too long, seconds.
    pub fn rtt_error_s(&self) -> Option<f64> {
        Some(self.rtt?.as_secs_f64() - self.rtt_expected.as_secs_f64())
    }

    /// Relative error of the rate.
    pub fn rate_error(&self) -> Option<f64> {
        let (rate, expected) = (self.rate?, self.rate_expected?);
        Some(rate.as_bits_per_second() as f64 / expected.as_bits_per_second() as f64 - 1.0)
    }
}

/// Checked devices and the results of the check, as required by [`Testbed::play`].
#[derive(Debug)]
pub struct Checked {
    /// Delay and rate of each path.
    pub paths: Vec<PathCheck>,
    /// Devices from [`Hosts::create`](crate::Hosts::create).
    pub(crate) devices: Vec<Tun>,
    /// Whether probes run beside the applications.
    pub(crate) probed: bool,
}

impl Testbed<'_> {
    /// Takes the devices unchecked, for a run without any packets but those of its applications: the
    /// verdict then knows the emulator's lateness, stalls and drops alone.
    pub fn unchecked(&self, devices: Vec<Tun>) -> Checked {
        Checked { paths: Vec::new(), devices, probed: false }
    }

    /// Checks every path over the devices from [`Hosts::create`](crate::Hosts::create). The run's
    /// [`Health::verdict`](crate::Health::verdict) judges the results.
    ///
    /// # Errors
    ///
    /// [`TestbedError::Host`] if the host lacks a resource or accepts no probe; a path outside of
    /// its tolerance is not an error.
    pub fn self_check(&self, devices: Vec<Tun>) -> Result<Checked, TestbedError> {
        let Testbed { scenario, hosts } = self;
        let (mut links, routes) = links_and_routes(scenario);
        for (config, _) in &mut links {
            *config = nominal(config);
        }
        let paths = hosts.paths().len();
        let checks: Vec<PathCheck> = (0..paths).map(|path| expected(scenario, path)).collect();
        let far_sockets = hosts.receiver.within(|| echo_sockets(paths))?;
        let near_sockets = hosts.sender.within(|| probe_sockets(paths))?;
        let bursts = checks.iter().zip(hosts.paths()).map(|(check, path)| Burst {
            ip_bytes: path.mtu,
            packets: burst_packets(check, path.mtu),
        });
        let bursts = bursts.collect();
        let stage = Stage {
            clock: Clock::start(),
            checks,
            probe_interval: probe_interval(&links, paths),
            bursts,
            over: AtomicBool::new(false),
        };
        let sample_interval = Time::from_secs(3600);
        let plan = Emulation { links, routes, sample_interval, duration: Time::MAX };
        stage.play(plan, devices, &near_sockets, &far_sockets)
    }
}

struct Stage {
    clock: Clock,
    checks: Vec<PathCheck>,
    probe_interval: Time,
    bursts: Vec<Burst>,
    over: AtomicBool,
}

#[derive(Clone, Copy)]
struct Burst {
    ip_bytes: u32,
    packets: u32,
}

impl Stage {
    fn play(
        mut self,
        plan: Emulation,
        devices: Vec<Tun>,
        near: &[UdpSocket],
        far: &[UdpSocket],
    ) -> Result<Checked, TestbedError> {
        let (stage, probing_over) = (&self, AtomicBool::new(false));
        let (begin, begun) = channel();
        let (tell, told) = channel();
        let (outcome, measured) = thread::scope(|scope| {
            let emulator = scope.spawn(|| {
                realtime::prepare(realtime::EMULATOR);
                Emulator::new(plan, devices, stage.clock, &mut |_, _| {}).run(&stage.over)
            });
            let probing = &probing_over;
            let receiver = scope.spawn(move || {
                realtime::prepare(realtime::PROBE);
                echo(far, probing)?;
                stage.receive_bursts(far, &begun, &tell)
            });
            let measured = scope.spawn(move || {
                realtime::prepare(realtime::PROBE);
                let probes = stage.probe(near, probing);
                let rates = stage.send_bursts(near, &begin, &told);
                // Closing the channel ends the receiving thread.
                drop(begin);
                Ok::<_, TestbedError>((probes?, rates?))
            });
            let measured = measured.join();
            stage.over.store(true, Ordering::Relaxed);
            probing_over.store(true, Ordering::Relaxed);
            let received = receiver.join();
            (emulator.join(), (measured, received))
        });
        let (measured, received) = measured;
        received.map_err(|_| TestbedError::Panicked)??;
        let (probes, rates) = measured.map_err(|_| TestbedError::Panicked)??;
        let outcome = outcome.map_err(|_| TestbedError::Panicked)??;
        for (check, (probe, rate)) in self.checks.iter_mut().zip(probes.iter().zip(rates)) {
            check.rtt = probe.rtt_at(0.5);
            check.rate = rate;
        }
        Ok(Checked { paths: self.checks, devices: outcome.devices, probed: true })
    }

    fn probe(&self, near: &[UdpSocket], over: &AtomicBool) -> Result<Vec<PathProbe>, TestbedError> {
        let longest = self.checks.iter().map(|check| check.rtt_expected).max();
        let intervals = Time::from_nanos(self.probe_interval.as_nanos() * PROBES_MIN);
        let until = self.clock.now() + longest.unwrap_or_default() + PROBING.max(intervals);
        let sockets = near.iter().map(UdpSocket::try_clone).collect::<Result<Vec<_>, _>>();
        let sockets = sockets.map_err(|source| TestbedError::call("share a socket", source))?;
        let intervals = vec![self.probe_interval; near.len()];
        let probes = Prober::new(sockets, intervals, self.clock).run(until, &self.over);
        over.store(true, Ordering::Relaxed);
        probes
    }

    fn send_bursts(
        &self,
        near: &[UdpSocket],
        begin: &Sender<usize>,
        told: &Receiver<Option<Rate>>,
    ) -> Result<Vec<Option<Rate>>, TestbedError> {
        let mut rates = Vec::new();
        for (path, Burst { ip_bytes, packets }) in self.bursts.iter().copied().enumerate() {
            if packets == 0 || begin.send(path).is_err() {
                rates.push(None);
                continue;
            }
            // If interrupted, the head start is slightly shorter.
            let _ = ppoll(&mut [], Some(timespec(HEAD_START)), None);
            send_burst(&near[path], ip_bytes, packets)?;
            rates.push(told.recv().unwrap_or(None));
        }
        Ok(rates)
    }

    fn receive_bursts(
        &self,
        far: &[UdpSocket],
        begun: &Receiver<usize>,
        tell: &Sender<Option<Rate>>,
    ) -> Result<(), TestbedError> {
        while let Ok(path) = begun.recv() {
            let Burst { ip_bytes, packets } = self.bursts[path];
            let check = &self.checks[path];
            let bytes = u64::from(packets) * u64::from(ip_bytes);
            let crossing = check.rate_expected.map_or(Time::ZERO, |rate| rate.time_for(bytes));
            let until = self.clock.now() + check.rtt_expected + crossing.scale(1.5) + BURST;
            let rate = receive_burst(&far[path], (ip_bytes, packets), until, self.clock)?;
            if tell.send(rate).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// A link with its initial settings, without effects of chance and load.
fn nominal(config: &Config) -> Config {
    let (_, delay) = config.delay.base.0[0];
    Config {
        rate: first_rate(config).map_or(RateModel::Unlimited, RateModel::Constant),
        ..Config::pure_delay(delay)
    }
}

fn first_rate(config: &Config) -> Option<Rate> {
    match &config.rate {
        RateModel::Constant(rate) => Some(*rate),
        RateModel::Steps(steps) => steps.0.first().map(|(_, rate)| *rate),
        RateModel::Unlimited | RateModel::Trace(_) => None,
    }
    .filter(|rate| *rate > Rate::ZERO)
}

/// Interval between the probes of a path: on the slowest link, at least half of the time is free
/// although all paths may cross it.
fn probe_interval(links: &[(Config, ChaCha8Rng)], paths: usize) -> Time {
    let slowest = links.iter().filter_map(|(config, _)| first_rate(config)).min();
    let serialisation = slowest.map_or(Time::ZERO, |rate| rate.time_for(PROBE_BYTES));
    PROBE_INTERVAL.max(Time::from_nanos(2 * paths as u64 * serialisation.as_nanos()))
}

fn expected(scenario: &Scenario, path: usize) -> PathCheck {
    let plan = &scenario.paths[path];
    let crossing = |links: &[usize]| -> Time {
        let configs = links.iter().map(|link| &scenario.links[*link].config);
        let times = configs.map(|config| {
            let serialisation = first_rate(config).map(|rate| rate.time_for(PROBE_BYTES));
            config.delay.base.0[0].1 + serialisation.unwrap_or_default()
        });
        times.fold(Time::ZERO, Time::saturating_add)
    };
    let back = match &plan.reverse {
        Reverse::Delay(delay) => *delay,
        Reverse::Links(links) => crossing(links),
    };
    let forward = plan.forward.iter();
    let rate = forward.filter_map(|link| first_rate(&scenario.links[*link].config)).min();
    let rtt_expected = crossing(&plan.forward) + back;
    PathCheck { path, rtt_expected, rate_expected: rate, ..PathCheck::default() }
}

fn burst_packets(check: &PathCheck, mtu: u32) -> u32 {
    let packets = |rate: Rate| rate.bytes_in(BURST) / u64::from(mtu);
    let (fewest, most) = (*BURST_PACKETS.start(), *BURST_PACKETS.end());
    check.rate_expected.map_or(0, |rate| packets(rate).clamp(fewest, most)) as u32
}

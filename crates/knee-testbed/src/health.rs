//! Soundness of a run: a late real-time ground proves nothing.
//!
//! | what | degraded | invalid |
//! | --- | --- | --- |
//! | 99th percentile of lateness | over 0.5 ms | over 5 ms |
//! | time in stalls of 20 ms and more | any | over 1 % of the run |
//! | packets that TUN queues dropped | any | over 0.1 % of all |
//! | CPU time stolen by the hypervisor | over 2 % | over 10 % |
//! | self-check: median RTT is off by | over 0.5 ms | over 5 ms, or unanswered |
//! | self-check: rate is off by | over 1 % | over 5 %, or incomplete |
//!
//! `knee-lab` adds how long senders waited for their host, from `TCP_INFO`.
//!
//! 0.5 ms is under 1 % of an RTT of 60 ms, and the tolerance of the median RTT is ten times as
//! much. Stalls of 20 ms and more result from real-time throttling (50 ms in each second), and one
//! such stall causes a burst larger than any link of the scenario does.

use crate::probe::PathProbe;
use crate::self_check::PathCheck;
use knee_emulator::Tally;
use knee_record::Verdict;
use knee_units::Time;

const LATENESS_DEGRADED: Time = Time::from_micros(500);
const LATENESS_INVALID: Time = Time::from_millis(5);
const STALLED_INVALID: f64 = 0.01;
const DROPPED_INVALID: f64 = 0.001;
const STOLEN_DEGRADED: f64 = 0.02;
const STOLEN_INVALID: f64 = 0.1;
const RTT_ERROR_DEGRADED_S: f64 = 0.0005;
const RTT_ERROR_INVALID_S: f64 = 0.005;
/// The burst lasts 0.1 s, and the thread that times its ends may be late.
const RATE_ERROR_DEGRADED: f64 = 0.01;
const RATE_ERROR_INVALID: f64 = 0.05;

/// Condition of the host during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Lateness and stalls of the emulator.
    pub emulator: Tally,
    /// Packets dropped by queues of TUN devices, unseen by any link.
    pub tun_dropped_packets: u64,
    /// CPU time of the emulator over the run's duration.
    pub cpu: f64,
    /// Fraction of CPU time taken by the hypervisor.
    pub stolen: f64,
    /// Delay and rate of each path before the run.
    pub self_check: Vec<PathCheck>,
    /// Round trips of each path during the run.
    pub probes: Vec<PathProbe>,
    /// Privileges that the host denied.
    pub warnings: Vec<String>,
}

impl Health {
    /// The verdict with its reason, which is empty if there is none.
    pub fn verdict(&self) -> (Verdict, String) {
        let ours = [self.late(), self.stalled(), self.dropped(), self.stolen()];
        let checks = self.self_check.iter().flat_map(|check| [delay_off(check), rate_off(check)]);
        let (verdicts, reasons): (Vec<_>, Vec<_>) =
            ours.into_iter().chain(checks).flatten().unzip();
        (Verdict::worst(verdicts), reasons.join("; "))
    }

    fn late(&self) -> Option<(Verdict, String)> {
        let late = self.emulator.lateness.at(0.99);
        let verdict = graded(late > LATENESS_DEGRADED, late > LATENESS_INVALID)?;
        let millis = late.as_millis_f64();
        Some((verdict, format!("one packet in a hundred left over {millis:.1} ms late")))
    }

    fn stalled(&self) -> Option<(Verdict, String)> {
        let share =
            self.emulator.stalled.as_secs_f64() / self.emulator.duration.as_secs_f64().max(1e-9);
        let verdict = graded(self.emulator.stalls > 0, share > STALLED_INVALID)?;
        let millis = self.emulator.stalled.as_millis_f64();
        let reason = match self.emulator.stalls {
            1 => format!("the emulator stood still once, for {millis:.0} ms"),
            count => format!("the emulator stood still {count} times, {millis:.0} ms in all"),
        };
        Some((verdict, reason))
    }

    fn dropped(&self) -> Option<(Verdict, String)> {
        let dropped = self.tun_dropped_packets + self.emulator.refused_packets;
        let share = dropped as f64 / self.emulator.packets.max(1) as f64;
        let verdict = graded(dropped > 0, share > DROPPED_INVALID)?;
        let packets = if dropped == 1 { "packet was" } else { "packets were" };
        Some((verdict, format!("{dropped} {packets} lost outside the links")))
    }

    fn stolen(&self) -> Option<(Verdict, String)> {
        let verdict = graded(self.stolen > STOLEN_DEGRADED, self.stolen > STOLEN_INVALID)?;
        Some((verdict, format!("the hypervisor took {:.0} % of the CPU", self.stolen * 100.0)))
    }
}

fn delay_off(check: &PathCheck) -> Option<(Verdict, String)> {
    let Some(error) = check.rtt_error_s() else {
        return Some((Verdict::Invalid, format!("no probe came back over path {}", check.path)));
    };
    let off = error.abs();
    let verdict = graded(off > RTT_ERROR_DEGRADED_S, off > RTT_ERROR_INVALID_S)?;
    let millis = error * 1e3;
    Some((
        verdict,
        format!("the RTT of path {} was off by {millis:.1} ms before the run", check.path),
    ))
}

fn rate_off(check: &PathCheck) -> Option<(Verdict, String)> {
    check.rate_expected?;
    let Some(error) = check.rate_error() else {
        return Some((
            Verdict::Invalid,
            format!("a burst over path {} was incomplete", check.path),
        ));
    };
    let off = error.abs();
    let verdict = graded(off > RATE_ERROR_DEGRADED, off > RATE_ERROR_INVALID)?;
    let percent = error * 100.0;
    Some((
        verdict,
        format!("the rate of path {} was off by {percent:.1} % before the run", check.path),
    ))
}

fn graded(degraded: bool, invalid: bool) -> Option<Verdict> {
    match (degraded, invalid) {
        (_, true) => Some(Verdict::Invalid),
        (true, false) => Some(Verdict::Degraded),
        (false, false) => None,
    }
}

//! Finds the path that explains what tools measured on it. Implements `knee fit FILE…`.
//!
//! Packets that were answered while nothing else was sent tell the RTT, jitter and loss; a transfer
//! over TCP tells rate, buffer and loss, if simulations of its controller over other paths look
//! different. What neither tells is unknown.

use super::{FitSettings, SCAN};
use crate::directory::FITTED;
use crate::error::Error;
use crate::experiment::{Experiment, ExperimentSettings};
use crate::fit::{FITTED_RUN, FitError};
use crate::ground::SIMULATOR;
use crate::lab::Lab;
use crate::text::ScenarioText;
use knee_advise::{
    Figure, Known, LinkBounds, LinkPath, MISFIT_MAX, Misfitting, SampleInterval, SearchSettings,
    Series,
};
use knee_foreign::{Bulk, Datagrams, Interval, Measured, Probes, read_measurement};
use knee_record::{FlowSample, RunView, write_text};
use knee_scenario::{Scenario, load_file};
use std::path::{Path, PathBuf};

/// Part of a transfer that is simulated at most, seconds.
const SECONDS_MAX: f64 = 60.0;
/// Bytes of an interval at least; shorter ones are put together. iperf3 counts what it writes, in
/// blocks of 128 KiB.
const BYTES_MIN: u64 = 500_000;
/// Headers of IP and TCP with time stamps, and of IP and UDP, bytes.
const TCP_HEADER: f64 = 52.0;
const UDP_HEADER: f64 = 28.0;
/// Factor by which a host's transfer may differ from a simulated one over the same path.
const MODEL: f64 = 1.02;
/// Part of what was counted that arrived within the time for certain: what a queue still holds at the
/// end of a transfer is counted, too.
const COUNTED: f64 = 0.95;
/// Fewest answers that tell an RTT, and a jitter.
const ANSWERS_MIN: usize = 3;
const JITTER_ANSWERS_MIN: usize = 20;
/// Datagrams above this size are sent in several packets, and lost if one of them is.
const DATAGRAM_MAX: u32 = 1472;
/// More lost than this may be a rate above the link's.
const OVERLOAD: f64 = 0.05;

const ADVICE: &str = "name a file that a tool wrote, or a directory that knee run wrote";

/// What is known of a figure, and how.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The figure with its bounds.
    pub figure: Figure,
    /// How it is known, or why not.
    pub how: String,
}

/// How the best path's transfer compares with the measured one.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The sender's controller.
    pub controller: String,
    /// Distance of the simulated transfer from the measured one; see [`crate::Fitted`].
    pub misfit: f64,
    /// What the best path reproduces least.
    pub misfitting: Vec<Misfitting>,
}

/// The path that explains what tools measured.
#[derive(Clone, Debug)]
pub struct MeasuredFit {
    /// What each file contains.
    pub read: Vec<String>,
    /// Rate, bit/s.
    pub rate: Estimate,
    /// RTT without queueing, seconds.
    pub rtt: Estimate,
    /// Probability of random loss.
    pub loss: Estimate,
    /// Queue capacity, bytes.
    pub buffer: Estimate,
    /// Largest addition to the RTT of 95 % of the packets, seconds.
    pub jitter: Estimate,
    /// The transfer, if there was one that could be simulated.
    pub compared: Option<Compared>,
    /// What the scenario assumes of what is unknown.
    pub assumed: Vec<String>,
    /// The scenario with that path.
    pub scenario: String,
}

impl Estimate {
    fn unknown(how: impl Into<String>) -> Estimate {
        let figure = Figure { best: 0.0, low: 0.0, high: f64::INFINITY, known: Known::Unknown };
        Estimate { figure, how: how.into() }
    }

    fn new(known: Known, [low, best, high]: [f64; 3], how: impl Into<String>) -> Estimate {
        Estimate { figure: Figure { best, low, high, known }, how: how.into() }
    }

    fn is_close(&self) -> bool {
        self.figure.known == Known::Closely
    }

    /// Returns the better known of two.
    fn or(self, other: Estimate) -> Estimate {
        let rank = |one: &Estimate| match one.figure.known {
            Known::Closely => 0,
            Known::Between => 1,
            Known::AtLeast | Known::AtMost => 2,
            Known::Unknown => 3,
        };
        let width = |one: &Estimate| one.figure.high / one.figure.low.max(f64::MIN_POSITIVE);
        let key = |one: &Estimate| (rank(one), width(one));
        if key(&other) < key(&self) { other } else { self }
    }

    /// The value that a scenario takes, if anything is known.
    fn value(&self) -> Option<f64> {
        let Figure { best, low, high, known } = self.figure;
        match known {
            Known::Closely => Some(best),
            Known::Between => Some((low * high).sqrt()),
            Known::AtLeast => Some(low),
            Known::AtMost | Known::Unknown => None,
        }
    }
}

impl Lab {
    /// Finds the path that explains what tools measured on it. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// A file that cannot be read or says nothing of a path, or the first failure of a simulation.
    pub fn fit_files(
        &self,
        files: &[PathBuf],
        settings: &FitSettings,
    ) -> Result<Option<MeasuredFit>, Error> {
        let mut all = All::default();
        for file in files {
            all.read(file)?;
        }
        let Some(found) = all.transfer(self, settings)? else { return Ok(None) };
        Ok(Some(all.path(found)?))
    }

    /// Writes the scenario with the path, and runs it. Returns the scenario's file.
    ///
    /// # Errors
    /// What could not be run or written.
    pub fn keep_measured_fit(&self, fitted: &MeasuredFit, out: &Path) -> Result<PathBuf, Error> {
        let file = out.join(FITTED);
        write_text(&file, &fitted.scenario)?;
        let settings = ExperimentSettings {
            alternatives: false,
            ..ExperimentSettings::on(self.grounds.get(SIMULATOR)?)
        };
        let text = ScenarioText::read(&file)?;
        let mut experiments = vec![Experiment::new(text, settings, out.join(FITTED_RUN))?];
        self.carry_out(&mut experiments)?;
        Ok(file)
    }
}

/// What all files say.
#[derive(Default)]
struct All {
    read: Vec<String>,
    bulk: Option<Bulk>,
    datagrams: Vec<Datagrams>,
    probes: Vec<Probes>,
}

/// What a transfer tells.
struct Found {
    rate: Estimate,
    loss: Estimate,
    buffer: Estimate,
    rtt: Estimate,
    compared: Option<Compared>,
}

impl All {
    fn read(&mut self, file: &Path) -> Result<(), Error> {
        let name = file.display().to_string();
        let wrong = |why: String, advice: &str| FitError::File(name.clone(), why, advice.into());
        let bytes =
            load_file(file).map_err(|why| wrong(format!("cannot be read: {why}"), ADVICE))?;
        let read = read_measurement(&bytes).map_err(|error| {
            wrong(format!("line {}: {}", error.line, error.problem), &error.advice)
        })?;
        for measured in read.measured {
            let (what, kept) = match measured {
                Measured::Bulk(bulk) => {
                    let seconds: f64 = bulk.intervals.iter().map(|one| one.seconds).sum();
                    let kept = self.bulk.is_none();
                    let what = format!(
                        "a transfer of {seconds:.0} s over {} under {}",
                        match bulk.streams {
                            1 => "one connection".to_string(),
                            more => format!("{more} connections"),
                        },
                        bulk.controller.as_deref().unwrap_or("an unknown controller")
                    );
                    self.bulk.get_or_insert(bulk);
                    (what, kept)
                }
                Measured::Datagrams(datagrams) => {
                    let Datagrams { sent, lost, .. } = datagrams;
                    self.datagrams.push(datagrams);
                    (format!("{sent} datagrams, {lost} of them lost"), true)
                }
                Measured::Probes(probes) => {
                    let answers = probes.answers.len();
                    let what = match probes.sent {
                        Some(sent) => format!("{answers} of {sent} packets were answered"),
                        None => format!("{answers} packets were answered"),
                    };
                    self.probes.push(probes);
                    (what, true)
                }
            };
            let left = if kept { "" } else { " (left out: there was one before)" };
            self.read.push(format!("{name}: {}, {what}{left}", read.format));
        }
        Ok(())
    }

    /// The time of the transfer, seconds since 1970; `None` if it is not known.
    fn busy(&self) -> Option<(f64, f64)> {
        let bulk = self.bulk.as_ref()?;
        let seconds: f64 = bulk.intervals.iter().map(|one| one.seconds).sum();
        let begun = bulk.begun_s?;
        // The tools tell their beginning to the second.
        Some((begun - 1.0, begun + bulk.omitted_s + seconds + 2.0))
    }

    /// Returns the RTTs while nothing else was sent, ascending, and whether all packets belong to
    /// them: then the number of lost ones does, too.
    fn idle(&self) -> (Vec<f64>, bool) {
        let busy = self.busy();
        let is_idle = |at: &Option<f64>| match (&self.bulk, busy, at) {
            (None, ..) => true,
            (Some(_), Some((from, until)), Some(at)) => !(from..until).contains(at),
            // When the packets or the transfer were is not known.
            _ => false,
        };
        let answers = || self.probes.iter().flat_map(|one| &one.answers);
        let mut rtts: Vec<f64> =
            answers().filter(|(at, _)| is_idle(at)).map(|(_, rtt)| *rtt).collect();
        rtts.sort_by(f64::total_cmp);
        let whole = rtts.len() == answers().count();
        (rtts, whole)
    }

    /// The RTT without queueing.
    fn rtt(&self) -> Estimate {
        let (idle, _) = self.idle();
        let of_tcp = self.bulk.as_ref().and_then(|bulk| bulk.rtt_min_s);
        let from_tcp = of_tcp.map_or(Estimate::unknown("no file has an RTT without load"), |rtt| {
            let how = "the smallest that the sender saw, which begins with its handshake";
            Estimate::new(Known::Closely, [0.98 * rtt, rtt, rtt], how)
        });
        let [first, ..] = idle[..] else {
            let loaded = self.probes.iter().flat_map(|one| &one.answers).map(|(_, rtt)| *rtt);
            let least = loaded.fold(f64::INFINITY, f64::min);
            if least == f64::INFINITY {
                return from_tcp;
            }
            let how = "no packet was answered while nothing else was sent";
            return from_tcp.or(Estimate::new(Known::AtMost, [0.0, 0.0, least], how));
        };
        if idle.len() < ANSWERS_MIN {
            let how = format!("fewer than {ANSWERS_MIN} packets were answered");
            return from_tcp.or(Estimate::new(Known::AtMost, [0.0, 0.0, first], how));
        }
        // What the hosts themselves need is in it.
        let tenth = idle[idle.len() / 10].min(1.03 * first);
        let how = format!("the smallest of {} that were measured without load", idle.len());
        Estimate::new(Known::Closely, [0.98 * first, first, tenth], how).or(from_tcp)
    }

    fn jitter(&self) -> Estimate {
        let (idle, _) = self.idle();
        if idle.len() < JITTER_ANSWERS_MIN {
            let how = format!("fewer than {JITTER_ANSWERS_MIN} packets were answered without load");
            return Estimate::unknown(how);
        }
        let at = |part: f64| {
            let place = ((idle.len() - 1) as f64 * part).round() as usize;
            idle[place] - idle[0]
        };
        let how = "95 % of the RTTs without load are above the smallest by no more";
        Estimate::new(Known::Between, [at(0.90), at(0.95), at(0.99)], how)
    }

    /// Loss that was counted directly.
    fn loss(&self) -> Estimate {
        let mut best = Estimate::unknown("no file counts lost packets");
        let sent: Option<u64> = self.probes.iter().map(|one| one.sent).sum();
        let answered: usize = self.probes.iter().map(|one| one.answers.len()).sum();
        if let (Some(sent @ 1..), (_, true)) = (sent, self.idle()) {
            best = best.or(counted(
                sent.saturating_sub(answered as u64),
                sent,
                "packets there and back",
            ));
        }
        for one in self.datagrams.iter().filter(|one| one.sent > 0) {
            if one.payload_bytes > DATAGRAM_MAX {
                let how =
                    "the datagrams were larger than a packet: some are lost with a part of them";
                best = best.or(Estimate::unknown(how));
                continue;
            }
            let found = counted(one.lost, one.sent, "datagrams");
            best = best.or(match one.lost as f64 > OVERLOAD * one.sent as f64 {
                false => found,
                true => {
                    let how = format!("{}; or the rate was above the link's", found.how);
                    Estimate::new(Known::AtMost, [0.0, 0.0, found.figure.high], how)
                }
            });
        }
        best
    }

    /// The least rate, by what arrived.
    fn least_rate(&self) -> Estimate {
        let of_datagrams = self.datagrams.iter().map(|one| {
            let bits = (f64::from(one.payload_bytes) + UDP_HEADER) * 8.0;
            (one.sent - one.lost) as f64 * bits / one.seconds
        });
        let of_bulk = self.bulk.iter().map(|bulk| {
            let bytes: u64 = bulk.intervals.iter().map(|one| one.bytes).sum();
            let seconds: f64 = bulk.intervals.iter().map(|one| one.seconds).sum();
            bytes as f64 * 8.0 / seconds / payload(bulk)
        });
        let most = COUNTED * of_datagrams.chain(of_bulk).fold(0.0, f64::max);
        match most > 0.0 {
            false => Estimate::unknown("nothing in the files tells it"),
            true => {
                let how = "so much arrived; whether more would have is not known";
                Estimate::new(Known::AtLeast, [most, most, f64::INFINITY], how)
            }
        }
    }

    /// Simulates the transfer over other paths. Returns `None` if it was stopped.
    fn transfer(&self, lab: &Lab, settings: &FitSettings) -> Result<Option<Found>, Error> {
        let without = |why: &str| Found {
            rate: self.least_rate(),
            loss: Estimate::unknown(why),
            buffer: Estimate::unknown(why),
            rtt: Estimate::unknown(why),
            compared: None,
        };
        let Some(bulk) = &self.bulk else {
            return Ok(Some(without("no file has a transfer that fills a queue")));
        };
        if bulk.is_limited {
            return Ok(Some(without("the sender was limited to a rate of its own")));
        }
        let Some(controller) = &bulk.controller else {
            return Ok(Some(without("the transfer's controller is not in the file")));
        };
        let intervals = cut(&bulk.intervals);
        if intervals.iter().all(|one| one.rtt_s.is_none() || one.retransmitted_bytes.is_none()) {
            let why =
                "the file has no RTT and retransmissions of its sender: record the sending end";
            return Ok(Some(without(why)));
        }
        let samples: Vec<SampleInterval> = intervals.iter().map(sample).collect();
        let Some(series) = smoothed(&samples, settings.seed) else {
            let why = format!(
                "too little was transferred: {} intervals of {} kB with an RTT are needed",
                Series::INTERVALS_MIN,
                BYTES_MIN / 1000
            );
            return Ok(Some(without(&why)));
        };
        let sought = Sought { bulk, controller, intervals: &intervals };
        if sought.over(&PROBE).is_err() {
            let why = format!("Knee has no controller {controller}");
            return Ok(Some(without(&why)));
        }
        let rtt = self.rtt();
        let known = rtt.is_close().then_some(rtt.figure.best);
        let bounds = LinkBounds::of_smoothed(&series, payload(bulk), known);
        let FitSettings { simulations, seed } = *settings;
        let how = SearchSettings { seed, simulations, kept: 1, scan: SCAN };
        let streams = bulk.streams;
        let found = lab.search_link((series, bounds, how), &|path| sought.over(path), &|view| {
            smoothed(&seen(view, streams), seed)
        })?;
        let Some((figures, best, misfitting)) = found else { return Ok(None) };
        let compared = Compared { controller: controller.clone(), misfit: best.misfit, misfitting };
        if best.misfit > MISFIT_MAX {
            let why = "no single path explains the transfer";
            return Ok(Some(Found { compared: Some(compared), ..without(why) }));
        }
        let [rate, rtt, loss, buffer] = figures;
        let estimate = |figure: Figure, [closely, least, most]: [&str; 3]| {
            let figure = widened(figure);
            let how = match figure.known {
                Known::Closely => closely,
                Known::Between => "only between these",
                Known::AtLeast => least,
                Known::AtMost => most,
                Known::Unknown => "it makes no difference to the transfer",
            };
            Estimate { figure, how: how.to_string() }
        };
        Ok(Some(Found {
            rate: estimate(
                rate,
                [
                    "its queue was filled",
                    "its queue was never filled: a faster link would show the same",
                    "",
                ],
            )
            .or(self.least_rate()),
            rtt: estimate(rtt, ["its queue was empty at times", "", ""]),
            loss: estimate(
                loss,
                [
                    "more is retransmitted than the queue drops",
                    "",
                    "no more is retransmitted than the queue drops",
                ],
            ),
            buffer: estimate(
                buffer,
                [
                    "it was filled, and dropped",
                    "it was never full: a larger one would show the same",
                    "a smaller one would show the same",
                ],
            ),
            compared: Some(compared),
        }))
    }

    /// Puts together what is known.
    fn path(self, found: Found) -> Result<MeasuredFit, Error> {
        // What was measured directly goes before what the search takes from it.
        let direct = self.rtt();
        let rtt = if direct.is_close() { direct } else { direct.or(found.rtt) };
        let loss = self.loss().or(found.loss);
        let Found { rate, buffer, compared, .. } = found;
        let mut assumed = Vec::new();
        let mut value = |estimate: &Estimate, name: &str, otherwise: f64, shown: String| {
            estimate.value().unwrap_or_else(|| {
                assumed.push(format!("{name}: unknown, assumed {shown}"));
                otherwise
            })
        };
        let rate_bps = value(&rate, "rate", 100e6, "100 Mbit/s".to_string());
        let least = |figure: &Figure, other: f64| match figure.known {
            Known::AtMost => figure.high.min(other),
            _ => other,
        };
        let rtt_guess = least(&rtt.figure, 0.05);
        let rtt_s = value(&rtt, "RTT", rtt_guess, format!("{:.1} ms", rtt_guess * 1e3));
        let part = value(&loss, "random loss", 0.0, "none".to_string());
        let bdp = (rate_bps * rtt_s / 8.0).max(16_000.0);
        let buffer_bytes = value(&buffer, "buffer", bdp, "1 BDP".to_string());
        let controller = compared.as_ref().map_or("cubic", |one| one.controller.as_str());
        let path = LinkPath { rate_bps, rtt_s, loss: part, buffer_bytes };
        let intervals = self.bulk.as_ref().map(|bulk| cut(&bulk.intervals)).unwrap_or_default();
        let scenario = text(&path, controller, self.bulk.as_ref(), &intervals);
        // It must run.
        ScenarioText::new(FITTED, &scenario).scenario(&[])?;
        let jitter = self.jitter();
        let read = self.read;
        Ok(MeasuredFit { read, rate, rtt, loss, buffer, jitter, compared, assumed, scenario })
    }
}

/// Widens the bounds by what the model leaves out: transfers of a host over the emulator give a rate
/// and a buffer that are off by as much.
fn widened(figure: Figure) -> Figure {
    Figure { low: figure.low / MODEL, high: figure.high * MODEL, ..figure }
}

/// A path with which the scenario of a transfer is tried before the search.
const PROBE: LinkPath = LinkPath { rate_bps: 1e7, rtt_s: 0.02, loss: 0.0, buffer_bytes: 50_000.0 };

/// A transfer whose path is sought.
struct Sought<'b> {
    bulk: &'b Bulk,
    controller: &'b str,
    intervals: &'b [Interval],
}

impl Sought<'_> {
    /// The transfer over a path.
    fn over(&self, path: &LinkPath) -> Result<Scenario, Error> {
        let text = text(path, self.controller, Some(self.bulk), self.intervals);
        Ok(ScenarioText::new(FITTED, &text).scenario(&[])?)
    }
}

/// Returns the scenario of a transfer over a path.
fn text(path: &LinkPath, controller: &str, bulk: Option<&Bulk>, intervals: &[Interval]) -> String {
    let LinkPath { rate_bps, rtt_s, loss, buffer_bytes } = *path;
    let half = format!("{:.0} us", (rtt_s * 5e5).max(1.0));
    let omitted = bulk.map_or(0.0, |bulk| bulk.omitted_s.clamp(0.0, SECONDS_MAX));
    let seconds: f64 = intervals.iter().map(|one| one.seconds).sum();
    let duration = if seconds > 0.0 { omitted + seconds } else { 20.0 };
    let interval = match intervals.len() {
        0 => 0.1,
        count => (seconds / count as f64).max(0.001),
    };
    let streams = bulk.map_or(1, |bulk| bulk.streams);
    let segment =
        bulk.and_then(|bulk| bulk.segment_bytes).filter(|size| (200..9000).contains(size));
    let segment = segment.map_or(String::new(), |size| format!("mss = \"{size} B\"\n"));
    format!(
        "name = \"The path that was measured\"\n\
         duration = \"{:.0} ms\"\nsample_interval = \"{:.0} us\"\nwarmup = \"{:.0} ms\"\n\n\
         [link.wire]\nrate = \"{rate_bps:.0} bit/s\"\ndelay = \"{half}\"\n\
         buffer = \"{buffer_bytes:.0} B\"\nloss = \"{:.4} %\"\n\n\
         [path.main]\nforward = [\"wire\"]\nreverse_delay = \"{half}\"\n\n\
         [[flow]]\nname = \"bulk\"\ncount = {streams}\ncc = \"{controller}\"\n{segment}",
        duration * 1e3,
        interval * 1e6,
        omitted * 1e3,
        100.0 * loss,
    )
}

/// Part of a packet that is payload.
fn payload(bulk: &Bulk) -> f64 {
    let segment = f64::from(bulk.segment_bytes.unwrap_or(1448));
    segment / (segment + TCP_HEADER)
}

/// The beginning of a transfer that is long enough, in intervals that carry enough.
fn cut(intervals: &[Interval]) -> Vec<Interval> {
    let (mut all, mut sum): (Vec<Interval>, f64) = (Vec::new(), 0.0);
    let mut open = Interval::default();
    for one in intervals {
        let again = open.retransmitted_bytes.unwrap_or(0);
        open = Interval {
            seconds: open.seconds + one.seconds,
            bytes: open.bytes + one.bytes,
            retransmitted_bytes: one.retransmitted_bytes.map(|bytes| bytes + again),
            rtt_s: one.rtt_s,
        };
        if open.bytes >= BYTES_MIN {
            sum += open.seconds;
            all.push(std::mem::take(&mut open));
        }
        if sum > SECONDS_MAX {
            break;
        }
    }
    all
}

fn sample(one: &Interval) -> SampleInterval {
    let again = one.retransmitted_bytes.unwrap_or(0);
    SampleInterval {
        seconds: one.seconds,
        delivered_bytes: one.bytes,
        sent_bytes: one.bytes + again,
        retransmitted_bytes: again,
        rtt_s: one.rtt_s,
    }
}

/// The statistics of intervals of which only smoothed RTTs are known.
fn smoothed(intervals: &[SampleInterval], seed: u64) -> Option<Series> {
    let least = intervals.iter().filter_map(|one| one.rtt_s).fold(f64::INFINITY, f64::min);
    Series::of(intervals, least, seed)
}

/// What a tool would have seen of a simulated transfer.
fn seen(view: &RunView<'_>, streams: usize) -> Vec<SampleInterval> {
    let flows = &view.flows[..streams.min(view.flows.len())];
    let from = view.warmup.as_nanos();
    let begin = FlowSample { time_ns: from, ..FlowSample::default() };
    let of_flow = |flow: &knee_record::FlowView<'_>| -> Vec<FlowSample> {
        let before = flow.samples.iter().filter(|sample| sample.time_ns <= from).last();
        let after = flow.samples.iter().filter(|sample| sample.time_ns > from);
        std::iter::once(before.unwrap_or(begin)).chain(after).collect()
    };
    let all: Vec<Vec<FlowSample>> = flows.iter().map(of_flow).collect();
    let count = all.iter().map(Vec::len).min().unwrap_or(0);
    let step = |at: usize| {
        let sum = |of: fn(&FlowSample) -> u64| -> u64 {
            all.iter().map(|flow| of(&flow[at]).saturating_sub(of(&flow[at - 1]))).sum()
        };
        let (before, after) = (all[0][at - 1], all[0][at]);
        let again = sum(|one| one.retransmitted_bytes);
        let delivered = sum(|one| one.delivered_bytes);
        SampleInterval {
            seconds: (after.time_ns - before.time_ns) as f64 / 1e9,
            delivered_bytes: delivered,
            sent_bytes: delivered + again,
            retransmitted_bytes: again,
            rtt_s: (after.srtt_ns > 0).then_some(after.srtt_ns as f64 / 1e9),
        }
    };
    (1..count).map(step).filter(|one| one.seconds > 0.0).collect()
}

/// A loss that was counted, with the interval of Wilson (1927) of 95 %.
fn counted(lost: u64, sent: u64, what: &str) -> Estimate {
    const Z: f64 = 1.96;
    let (n, part) = (sent as f64, lost as f64 / sent as f64);
    let middle = (part + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (part * (1.0 - part) / n + Z * Z / (4.0 * n * n)).sqrt();
    let (low, high) = ((middle - half).max(0.0), middle + half);
    let how = format!("{lost} of {sent} {what} were lost");
    match lost {
        0 => Estimate::new(Known::AtMost, [0.0, 0.0, high], how),
        // A factor of 1.5 to either side.
        _ if high <= 2.25 * low => Estimate::new(Known::Closely, [low, part, high], how),
        _ => Estimate::new(Known::Between, [low, part, high], how),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brown, Cai and DasGupta (2001), table 4: the interval of Wilson for 1 of 10 is 0.018 to 0.404.
    #[test]
    fn counted_losses_have_wilsons_interval() {
        let Figure { best, low, high, known } = counted(1, 10, "packets").figure;
        assert!((low - 0.0179).abs() < 1e-3 && (high - 0.4042).abs() < 1e-3, "{low} {high}");
        assert_eq!((best, known), (0.1, Known::Between));
        assert_eq!(counted(0, 100, "packets").figure.known, Known::AtMost);
        assert_eq!(counted(100, 10_000, "packets").figure.known, Known::Closely);
    }
}

//! Congestion marking, end to end: DCTCP over a step, with transport and link
//! driven by a separate loop, and classic ECN (RFC 3168) with Reno over a CoDel
//! that marks.

use knee_cc::{Connection, Controller, Decision, Event, Init, Needs, Sample, Selection, State};
use knee_link::{Aqm, Codel, RateModel, Threshold};
use knee_transport::Config;
use knee_trials::bottleneck::Bottleneck;
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::sync::{Arc, Mutex};

const RATE_MBIT: u64 = 50;
const RTT_MS: u64 = 10;
const MSS: u64 = 1448;
const MTU: u64 = 1500;
/// Goodput of a full link: ratio of payload to IP bytes.
const CEILING: f64 = RATE_MBIT as f64 * 1448.0 / 1500.0;

/// A sender that always has data, over a link of 50 Mbit/s.
fn bottleneck(
    controller: Box<dyn Controller>,
    aqm: Aqm,
    ack_every: u32,
    rtt_ms: u64,
) -> Bottleneck {
    let settings = Config { ecn: true, ack_every, ..Config::default() };
    let one_way = Time::from_millis(rtt_ms / 2);
    let rate = RateModel::Constant(Rate::from_bits_per_second(RATE_MBIT * 1_000_000));
    let link = knee_link::Config { rate, aqm, ..knee_link::Config::pure_delay(one_way) };
    let mut run = Bottleneck::new(&settings, controller, link, one_way);
    run.sender.write(u64::MAX);
    run
}

/// Internal state that a boxed controller shows to the test.
#[derive(Debug, Default)]
struct Shown {
    /// DCTCP's estimate of the marked share, with its time.
    alpha: Vec<(Time, f64)>,
    /// Bytes sent, and acknowledged, at each reduction after an echo.
    echoes: Vec<(u64, u64)>,
    losses: u64,
}

/// DCTCP over a step of a millisecond, which is 4.2 packets at 50 Mbit/s.
struct Steady {
    /// Mbit/s, and the mean of alpha, after 5 s.
    goodput: f64,
    alpha: f64,
}

fn step() -> Aqm {
    Aqm::Threshold(Threshold { delay: Time::from_millis(1) })
}

fn dctcp(ack_every: u32, one_by_one: bool) -> Steady {
    let shown = Arc::new(Mutex::new(Shown::default()));
    let watched = Watched { one_by_one, ..Watched::new("dctcp", &shown) };
    let mut run = bottleneck(Box::new(watched), step(), ack_every, RTT_MS);
    let (from, until) = (Time::from_secs(5), Time::from_secs(25));
    run.run_until(from);
    let before = run.receiver.delivered_bytes();
    run.run_until(until);
    let bytes = run.receiver.delivered_bytes() - before;

    let shown = shown.lock().unwrap();
    assert_eq!(shown.losses, 0);
    let alphas = shown.alpha.iter().filter(|(time, _)| *time >= from).map(|(_, alpha)| *alpha);
    let steady: Vec<f64> = alphas.collect();
    let alpha = steady.iter().sum::<f64>() / steady.len() as f64;
    Steady { goodput: bytes as f64 * 8.0 / (until - from).as_secs_f64() / 1e6, alpha }
}

/// Alizadeh et al., "Data Center TCP", SIGCOMM 2010, section 3.3: if one window
/// in each saw-tooth is marked, alpha solves
/// `alpha^2 (1 - alpha / 4) = (2 W + 1) / (W + 1)^2`, where W is the window at
/// which the queue reaches the step.
fn alpha_of_the_paper(window: f64) -> f64 {
    let marked = (2.0 * window + 1.0) / (window + 1.0).powi(2);
    let mut alpha = marked.sqrt();
    for _ in 0..20 {
        alpha = (marked / (1.0 - alpha / 4.0)).sqrt();
    }
    alpha
}

/// The analysis assumes that a window grows until a whole one is marked; a
/// window that is cut by less than it grew meets the step more often, with less
/// of it marked.
#[test]
fn dctcp_marks_no_more_than_its_analysis_says() {
    let Steady { goodput, alpha } = dctcp(1, true);
    let packets_per_ms = RATE_MBIT as f64 * 1e3 / 8.0 / MTU as f64;
    let expected = alpha_of_the_paper(packets_per_ms * (RTT_MS + 1) as f64);
    println!("goodput {goodput:.3} of {CEILING:.3}, alpha {alpha:.4}, paper {expected:.4}");
    assert!((0.5 * expected..expected).contains(&alpha), "alpha {alpha}, paper {expected}");
    assert!((48.0..=49.0).contains(&goodput), "{goodput} Mbit/s of {CEILING}");
}

/// Segments one by one, an ACK for every second: the link is full. Other
/// implementations have an alpha of 0.13.
#[test]
fn dctcp_keeps_the_link_full() {
    let Steady { goodput, alpha } = dctcp(2, true);
    println!("goodput {goodput:.3} of {CEILING:.3}, alpha {alpha:.4}");
    assert!((48.0..=49.0).contains(&goodput), "{goodput} Mbit/s of {CEILING}");
    assert!((0.1..0.18).contains(&alpha), "alpha {alpha}");
}

/// With bursts as sent by Linux, which take up most of the step: others have
/// 0.045 to 0.095. It costs one percent of the link.
#[test]
fn bursts_are_marked_less() {
    let Steady { goodput, alpha } = dctcp(2, false);
    println!("goodput {goodput:.3} of {CEILING:.3}, alpha {alpha:.4}");
    assert!(goodput > 0.98 * CEILING, "{goodput} Mbit/s of {CEILING}");
    assert!((0.045..=0.095).contains(&alpha), "alpha {alpha}");
}

/// Over 80 ms the first mark of slow start leaves a window that takes long to
/// grow at one segment per round trip: of the 333 packets that the path holds,
/// 125 are reached after 10 s at the earliest.
#[test]
fn dctcp_takes_long_to_fill_a_long_path() {
    let shown = Arc::new(Mutex::new(Shown::default()));
    let mut run = bottleneck(Box::new(Watched::new("dctcp", &shown)), step(), 2, 80);
    let mut rate = |until: u64| {
        let before = run.receiver.delivered_bytes();
        run.run_until(Time::from_secs(until));
        (run.receiver.delivered_bytes() - before) as f64 * 8.0 / 1e6
    };
    let (first_ten, next_four) = (rate(10) / 10.0, rate(14) / 4.0);
    println!("{first_ten:.2} and {next_four:.2} Mbit/s");
    assert!((10.0 * first_ten + 4.0 * next_four) / 14.0 < 20.0, "{first_ten}, {next_four}");
    assert!(first_ten < 10.0 && next_four < 25.0, "{first_ten}, {next_four}");
}

/// A controller with a record of its actions.
#[derive(Clone, Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    shown: Arc<Mutex<Shown>>,
    /// Whether segments are sent one by one, paced.
    one_by_one: bool,
}

impl Watched {
    fn new(name: &str, shown: &Arc<Mutex<Shown>>) -> Watched {
        let init = Init {
            mss: MSS as u32,
            mtu: MTU as u32,
            initial_window: 10 * MSS,
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        let inner = knee_cc::build(&Selection::named(name), init).unwrap();
        Watched { inner, shown: shown.clone(), one_by_one: false }
    }

    fn spread(&self, decision: Decision) -> Decision {
        let send_quantum = if self.one_by_one { MSS } else { decision.send_quantum };
        Decision { send_quantum, ..decision }
    }
}

impl Controller for Watched {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let decision = self.inner.on_ack(sample, connection);
        let alpha = self.inner.state().marked_share;
        let mut shown = self.shown.lock().unwrap();
        let new = alpha.filter(|alpha| shown.alpha.last().is_none_or(|(_, last)| last != alpha));
        shown.alpha.extend(new.map(|alpha| (connection.now, alpha)));
        self.spread(decision)
    }
    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        let mut shown = self.shown.lock().unwrap();
        match event {
            Event::CongestionEcho => {
                shown.echoes.push((connection.sent, connection.acknowledged));
            }
            Event::RecoveryStart | Event::Timeout => shown.losses += 1,
            _ => {}
        }
        drop(shown);
        let decision = self.inner.on_event(event, connection);
        self.spread(decision)
    }
    fn decision(&self) -> Decision {
        self.spread(self.inner.decision())
    }
    fn state(&self) -> State {
        self.inner.state()
    }
    fn needs(&self) -> Needs {
        let needs = self.inner.needs();
        Needs { pacing: needs.pacing || self.one_by_one, ..needs }
    }
}

/// RFC 3168, section 6.1.2: reactions "at most once per window of data"; and if
/// marks signal congestion, nothing has to be lost.
#[test]
fn reno_answers_marks_once_per_window_and_loses_nothing() {
    let shown = Arc::new(Mutex::new(Shown::default()));
    let watched = Watched::new("reno", &shown);
    let codel = Codel { target: Time::from_millis(5), interval: Time::from_millis(100), ecn: true };
    let mut run = bottleneck(Box::new(watched), Aqm::Codel(codel), 2, RTT_MS);
    run.run_until(Time::from_secs(30));

    let shown = shown.lock().unwrap();
    let counters = run.sender.counters();
    let goodput = run.receiver.delivered_bytes() as f64 * 8.0 / 30.0 / 1e6;
    println!("goodput {goodput:.3}, {} reductions, {counters:?}", shown.echoes.len());
    assert_eq!(counters.retransmitted_bytes, 0);
    assert_eq!(shown.losses, 0);
    assert!(run.forward.counters().marked_packets >= shown.echoes.len() as u64);
    assert!(shown.echoes.len() > 10, "{} reductions", shown.echoes.len());
    for pair in shown.echoes.windows(2) {
        let ((sent, _), (_, acknowledged)) = (pair[0], pair[1]);
        assert!(acknowledged > sent, "a second reduction within {sent}: {acknowledged}");
    }
    assert!(goodput > 0.95 * CEILING, "{goodput} Mbit/s of {CEILING}");
}

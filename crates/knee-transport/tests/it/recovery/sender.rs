//! Scripts of a sender.
//!
//! ```text
//! given window 20          the congestion window, in segments of 1448 bytes
//! 0    > 0:20              segments 0 to 19 leave at once
//! 100  < ack 1 sack 2:5    an ACK arrives after 100 ms
//!      > 1 again           segment 1 leaves again, in the same instant
//!      = state recovery, in_flight 17
//! 300  > 1 again           a timer fired, and this left
//! ```
//!
//! Every script begins with an open connection whose handshake took 100 ms
//! (`given rtt` changes that), so that SRTT and minimum RTT are 100 ms and the
//! timeout 300 ms; the application has data without end (`given data`).
//! Sequence numbers count segments: `2:5` is what packetdrill writes as
//! `2897:7241`. Whatever leaves must be in the script, and nothing else may.
//!
//! An ACK that advances echoes the timestamp of the first segment that it
//! acknowledges, as last sent (RFC 7323, section 4.3); any other ACK repeats
//! the previous echo; `ecr 0` overrides it. `dsack 3` reports segment 3 as
//! received twice; `ece` is a congestion echo.
//!
//! The window is halved when recovery begins, and falls to one segment above
//! what is in flight after a timeout; `given fixed 20` responds to nothing;
//! `given reno 20` is the controller of that name. `given quic` ends recovery
//! as QUIC does.

use super::controller::Halving;
use super::notation::{Line, SEGMENT, START, float, in_ms, lines, number, range, segments, time};
use knee_cc::{Controller, Init, Recovery, RecoveryPeriod, Selection};
use knee_transport::{Ack, AckDetails, Config, Pacing, ReceiveWindow, Segment, Sender, Transmit};
use knee_units::{Rate, Time};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use std::collections::{BTreeMap, VecDeque};

/// Runs a script, derived from `source`.
pub fn script(source: &str, text: &str) {
    let lines = lines(text);
    let (given, steps): (Vec<_>, Vec<_>) = lines.into_iter().partition(|l| l.kind == "given");
    let mut run = Run::new(source, text, &Given::new(&given));
    for step in &steps {
        run.line = step.number;
        run.step(step);
    }
    run.expect_nothing_else();
}

/// Setup of a connection.
struct Given {
    rtt: Time,
    data_bytes: u64,
    controller: (String, u64),
    /// Milliseconds between two segments.
    pace: Option<f64>,
    config: Config,
}

impl Given {
    fn new(lines: &[Line]) -> Given {
        let mut given = Given {
            rtt: Time::from_millis(100),
            data_bytes: u64::MAX,
            controller: ("window".to_owned(), 20),
            pace: None,
            config: Config::default(),
        };
        for line in lines {
            given.set(line.words[0], &line.words[1..]);
        }
        given
    }

    fn set(&mut self, name: &str, words: &[&str]) {
        match name {
            "rtt" => self.rtt = time(words[0]) - START,
            "data" => self.data_bytes = bytes(words),
            "window" | "fixed" | "reno" => {
                self.controller = (name.to_owned(), u64::from(number(words[0])));
            }
            "pace" => {
                self.pace = Some(float(words[0]));
                self.config.pacing = Pacing::On;
            }
            "receive_window" => self.config.receive_window = ReceiveWindow::Fixed(bytes(words)),
            "ecn" => self.config.ecn = true,
            "quic" => self.config.recovery = Some(RecoveryPeriod::Quic),
            _ => panic!("`given {name}` is unknown"),
        }
    }

    fn controller(&self) -> Box<dyn Controller> {
        let (name, segments) = (self.controller.0.as_str(), self.controller.1);
        if name == "reno" {
            let (mss, mtu) = (self.config.mss, self.config.mss + self.config.header);
            let rng = ChaCha8Rng::seed_from_u64(1);
            let init = Init { mss, mtu, initial_window: segments * SEGMENT, rng };
            return knee_cc::build(&Selection::named(name), init).expect("it is registered");
        }
        let rate = self.pace.map(|ms| (SEGMENT as f64 * 8.0 / ms * 1e3).round() as u64);
        Halving::new(segments, name == "window", rate.map(Rate::from_bits_per_second))
    }
}

/// Parses `5` as five segments, `700 bytes` as bytes.
fn bytes(words: &[&str]) -> u64 {
    let count = u64::from(number(words[0]));
    if words.get(1) == Some(&"bytes") { count } else { count * SEGMENT }
}

struct Run<'a> {
    source: &'a str,
    text: &'a str,
    line: usize,
    now: Time,
    sender: Sender,
    /// When pacing lets the next segment leave.
    paced_until: Time,
    /// Segments sent that the script has not named yet.
    left: VecDeque<(Time, Segment)>,
    /// Timestamp with which each segment was last sent.
    stamps: BTreeMap<u32, u32>,
    /// The last cumulative ACK, and its echoed timestamp.
    acknowledged: u32,
    echo: u32,
}

impl<'a> Run<'a> {
    fn new(source: &'a str, text: &'a str, given: &Given) -> Run<'a> {
        let mut sender = Sender::new(&given.config, given.controller());
        sender.write(given.data_bytes);
        let opened = START - given.rtt;
        assert!(matches!(sender.poll_transmit(opened), Transmit::Segment(_)), "the SYN");
        let timestamp_echo = opened.as_micros() as u32;
        sender.on_ack(START, &Ack { syn: true, timestamp_echo, ..Ack::default() }, None);
        let mut run = Run {
            source,
            text,
            line: 0,
            now: START,
            sender,
            paced_until: Time::MAX,
            left: VecDeque::new(),
            stamps: BTreeMap::new(),
            acknowledged: 0,
            echo: START.as_micros() as u32,
        };
        run.poll();
        run
    }

    fn fail(&self, why: &str) -> ! {
        let text: Vec<String> =
            self.text.lines().enumerate().map(|(i, line)| format!("{:3} {line}", i + 1)).collect();
        let (source, line) = (self.source, self.line);
        panic!("line {line}: {why}\n{source}\n{}", text.join("\n"))
    }

    fn step(&mut self, line: &Line) {
        if let Some(at) = line.at {
            self.advance(at);
        }
        match line.kind {
            ">" => self.expect_segments(&line.words),
            "<" => {
                self.expect_nothing_else();
                self.acknowledge(&line.words);
                self.poll();
            }
            "write" => {
                self.expect_nothing_else();
                self.sender.write(bytes(&line.words));
                self.poll();
            }
            "=" => {
                for claim in line.words.join(" ").split(',') {
                    self.expect_state(claim.trim());
                }
            }
            kind => self.fail(&format!("`{kind}` is no kind of line")),
        }
    }

    /// Advances the time; timers fire on the way.
    fn advance(&mut self, to: Time) {
        loop {
            let next = self.sender.timer().min(self.paced_until);
            if next > to {
                break;
            }
            self.now = next;
            if self.sender.timer() <= next {
                self.sender.on_timer(next);
            }
            self.poll();
        }
        self.now = to;
    }

    /// Collects what is sent now.
    fn poll(&mut self) {
        self.paced_until = loop {
            match self.sender.poll_transmit(self.now) {
                Transmit::Segment(segment) => {
                    self.stamps.insert(segment.number, segment.timestamp);
                    self.left.push_back((self.now, segment));
                }
                Transmit::At(at) => break at,
                Transmit::Nothing => break Time::MAX,
            }
        };
    }

    fn expect_nothing_else(&self) {
        if let Some((at, segment)) = self.left.front() {
            let again = if segment.retransmission { " again" } else { "" };
            self.fail(&format!("also left: {} > {}{again}", in_ms(*at), segment.number));
        }
    }

    fn expect_segments(&mut self, words: &[&str]) {
        let (numbers, flags) = segments(words);
        for number in numbers {
            let Some((at, segment)) = self.left.pop_front() else {
                self.fail(&format!("{number} did not leave"));
            };
            let found = (in_ms(at), segment.number, segment.retransmission, segment.window_reduced);
            let expected =
                (in_ms(self.now), number, flags.contains(&"again"), flags.contains(&"cwr"));
            if found != expected {
                let what = "(time, segment, again, cwr)";
                self.fail(&format!("{what} is {found:?}, not {expected:?}"));
            }
            if flags.contains(&"push") && !segment.push {
                self.fail(&format!("{number} is not pushed"));
            }
        }
    }

    fn acknowledge(&mut self, words: &[&str]) {
        let acknowledged = number(words[1]);
        if acknowledged > self.acknowledged {
            self.echo = self.stamps[&self.acknowledged];
            self.acknowledged = acknowledged;
        }
        let mut ack = Ack { number: acknowledged, timestamp_echo: self.echo, ..Ack::default() };
        let mut details = AckDetails::default();
        let mut words = words[2..].iter();
        let mut option = "";
        while let Some(word) = words.next() {
            match *word {
                "sack" => option = "sack",
                "dsack" => details.duplicate = words.next().map(|word| number(word)),
                "ecr" => {
                    ack.timestamp_echo =
                        time(words.next().expect("ecr has a time")).as_micros() as u32;
                }
                "ece" => ack.congestion_echo = true,
                block if option == "sack" => {
                    details.sack[usize::from(details.sack_count)] = range(block);
                    details.sack_count += 1;
                }
                word => self.fail(&format!("`{word}` is no part of an ACK")),
            }
        }
        self.echo = ack.timestamp_echo;
        let any = details != AckDetails::default();
        self.sender.on_ack(self.now, &ack, any.then_some(&details));
    }

    fn expect_state(&self, claim: &str) {
        let Some((name, expected)) = claim.split_once(' ') else {
            self.fail(&format!("`{claim}` claims nothing"));
        };
        if name == "state" {
            let found = state(self.sender.recovery());
            if found != expected {
                self.fail(&format!("state is {found}, not {expected}"));
            }
            return;
        }
        let found = self.value(name);
        let expected = if expected == "none" { f64::INFINITY } else { float(expected) };
        // Precision: a microsecond, a thousandth of a segment.
        if found != expected && (found - expected).abs() > 0.001 {
            self.fail(&format!("{name} is {found}, not {expected}"));
        }
    }

    fn value(&self, name: &str) -> f64 {
        let counters = self.sender.counters();
        let rtt = self.sender.rtt();
        let ms = |time: Time| time.as_nanos() as f64 / 1e6;
        let in_segments = |bytes: u64| bytes as f64 / SEGMENT as f64;
        match name {
            "window" => in_segments(self.sender.window()),
            "in_flight" => in_segments(self.sender.in_flight()),
            "delivered" => in_segments(self.sender.delivered()),
            "lost" => in_segments(counters.lost_bytes),
            "resent" => in_segments(counters.retransmitted_bytes),
            "recoveries" => counters.recoveries as f64,
            "undone" => counters.spurious_recoveries as f64,
            "timeouts" => counters.timeouts as f64,
            "probes" => counters.probes as f64,
            "reorderings" => self.sender.reorderings() as f64,
            "srtt" => ms(rtt.smoothed()),
            "rttvar" => ms(rtt.deviation()),
            "min_rtt" => ms(rtt.minimum()),
            "rto" => ms(rtt.rto()),
            "timer" if self.sender.timer() == Time::MAX => f64::INFINITY,
            "timer" => in_ms(self.sender.timer()),
            _ => self.fail(&format!("`{name}` is no part of the state")),
        }
    }
}

fn state(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Open => "open",
        Recovery::Disorder => "disorder",
        Recovery::WindowReduced => "cwr",
        Recovery::Recovery => "recovery",
        Recovery::Loss => "loss",
    }
}
